// names [SECONDS] - a method of a trait for a generic type is hot, below a function of a module.
use std::hint::black_box;

extern "C" {
    fn clock() -> i64; // CPU time of the process, in us (POSIX)
}

mod engine {
    use super::*;

    pub trait Turn {
        fn turn(&self, units: u64) -> u64;
    }

    pub struct Wheel<T>(pub T);

    impl Turn for Wheel<u32> {
        #[inline(never)]
        fn turn(&self, units: u64) -> u64 {
            let mut sum = u64::from(self.0);
            for i in 0..units {
                sum = black_box(sum.wrapping_mul(31) + i);
            }
            sum
        }
    }

    #[inline(never)]
    pub fn drive(units: u64) -> u64 {
        black_box(Wheel(7u32).turn(units)) + 1
    }
}

fn main() {
    let seconds = std::env::args().nth(1).map_or(1.0, |s| s.parse().unwrap());
    while (unsafe { clock() } as f64) < seconds * 1e6 {
        black_box(engine::drive(20000));
    }
}
