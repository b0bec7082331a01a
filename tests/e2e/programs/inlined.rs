// inlined [SECONDS] - the hot loop is two inlined calls below a function. The comments name the lines
// that the test expects.
use std::hint::black_box;

extern "C" {
    fn clock() -> i64; // CPU time of the process, in us (POSIX)
}

#[inline(always)]
fn innermost(units: u64) -> u64 {
    let mut sum = 0u64;
    for i in 0..units {
        sum = black_box(sum.wrapping_mul(31).wrapping_add(i)); // innermost
    }
    sum
}

#[inline(always)]
fn middle(units: u64) -> u64 {
    innermost(units + 1) // middle
}

#[inline(never)]
fn outer(units: u64) -> u64 {
    middle(units) ^ 5 // outer
}

fn main() {
    let seconds = std::env::args().nth(1).map_or(1.0, |s| s.parse().unwrap());
    let mut sum = 0u64;
    while (unsafe { clock() } as f64) < seconds * 1e6 {
        sum = sum.wrapping_add(outer(20000)); // main
    }
    black_box(sum);
}
