// inlined [SECONDS] - the hot loop is two inlined calls below a function. The comments name the lines
// that the test expects.
use std::hint::black_box;
use std::time::Instant;

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
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1.0);
    let start = Instant::now();
    let mut sum = 0u64;
    while start.elapsed().as_secs_f64() < seconds {
        sum = sum.wrapping_add(outer(20000)); // main
    }
    black_box(sum);
}
