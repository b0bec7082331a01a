// calls.rs - closures, trait objects, sorting, formatting, threads; the argument is the number of seconds.
use std::collections::HashMap;
use std::time::{Duration, Instant};

trait Shape {
    fn area(&self) -> f64;
}
struct Square(f64);
impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}

#[inline(never)]
fn fibonacci(n: u32) -> u32 {
    if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
}

fn round(n: usize) -> usize {
    let mut m: HashMap<String, Box<dyn Shape>> = HashMap::new();
    for i in 0..200 {
        m.insert(format!("{}", i * n), Box::new(Square(i as f64)));
    }
    let mut keys: Vec<&String> = m.keys().collect();
    keys.sort_by(|a, b| m[*a].area().partial_cmp(&m[*b].area()).unwrap().then(a.cmp(b)));
    keys.iter().map(|k| k.len()).sum::<usize>() + fibonacci(18) as usize
}

fn main() {
    let seconds = std::env::args().nth(1).map_or(1, |s| s.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    let work = move || {
        let mut sum = 0;
        while Instant::now() < end {
            sum += round(sum % 7 + 1);
        }
        sum
    };
    let other = std::thread::spawn(work);
    println!("{}", (work() + other.join().unwrap()) % 2);
}
