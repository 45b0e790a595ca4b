// SPDX-License-Identifier: Apache-2.0
// Rust's threads, channels and locks. They wait with their own futexes; the runtime installs a small signal stack.
use std::sync::{mpsc, Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

fn main() {
    let (to_worker, from_main) = mpsc::channel::<u64>();
    let (to_main, from_worker) = mpsc::channel::<u64>();
    let worker = thread::spawn(move || {
        for value in from_main {
            thread::sleep(Duration::from_millis(1));
            to_main.send(value * 2).unwrap();
        }
    });
    let start = Instant::now();
    let mut sum = 0;
    for value in 0..10 {
        to_worker.send(value).unwrap();
        sum += from_worker.recv().unwrap();
    }
    println!("sum {} after {} ms", sum, start.elapsed().as_millis());
    drop(to_worker);
    worker.join().unwrap();

    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let (lock, condition) = &*pair;
    let start = Instant::now();
    let guard = lock.lock().unwrap();
    let (guard, result) = condition.wait_timeout(guard, Duration::from_millis(20)).unwrap();
    println!("timeout {} after {} ms", result.timed_out(), start.elapsed().as_millis());
    drop(guard);

    let mut x = 0.0f64;
    for round in 0..200 {
        for i in 0..20000 {
            x += f64::from(i % (round + 7));
        }
        if Instant::now() < start {
            println!("time went back");
        }
    }
    println!("computed {}", x > 0.0);
}
