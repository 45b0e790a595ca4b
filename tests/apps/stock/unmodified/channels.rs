// SPDX-License-Identifier: Apache-2.0
// Threads of Rust's standard library, the iteration order of its hash maps (random), and a child.
use std::collections::HashMap;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

fn channels() -> usize {
    let (sender, receiver) = mpsc::sync_channel::<usize>(4);
    let barrier = Arc::new(Barrier::new(4));
    let sent = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let (sender, barrier, sent) = (sender.clone(), barrier.clone(), sent.clone());
            thread::spawn(move || {
                barrier.wait();
                for round in 0..50 {
                    if round % 10 == number {
                        thread::sleep(Duration::from_micros(30 * number as u64));
                    }
                    sender.send(100 * number + round).unwrap();
                    sent.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    drop(sender);
    let order = receiver.into_iter().fold(0usize, |order, value| order.wrapping_mul(31).wrapping_add(value));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    order + sent.load(Ordering::SeqCst)
}

fn map() -> Option<(String, usize)> {
    let map = RwLock::new(HashMap::new());
    thread::scope(|scope| {
        for number in 0..4 {
            let map = &map;
            scope.spawn(move || {
                for key in 0..20 {
                    map.write().unwrap().insert(format!("{number}-{key}"), key);
                }
            });
        }
    });
    let first = map.into_inner().unwrap().into_iter().next();
    first
}

fn in_turn() -> usize {
    let pair = Arc::new((Mutex::new(0usize), Condvar::new()));
    let play = |pair: Arc<(Mutex<usize>, Condvar)>, mine: usize| {
        for _ in 0..100 {
            let mut count = pair.0.lock().unwrap();
            while *count % 2 != mine {
                count = pair.1.wait(count).unwrap();
            }
            *count += 1;
            pair.1.notify_one();
        }
    };
    let other = pair.clone();
    let thread = thread::spawn(move || play(other, 1));
    play(pair.clone(), 0);
    thread.join().unwrap();
    let count = *pair.0.lock().unwrap();
    count
}

fn main() {
    let start = Instant::now();
    println!("channels {}", channels());
    println!("first of a map {:?}", map());
    println!("in turn {}", in_turn());
    let parked = thread::current();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(2));
        parked.unpark();
    });
    thread::park();
    let child = Command::new("date").arg("+%s%N").output().unwrap();
    print!("child {}", String::from_utf8_lossy(&child.stdout));
    println!("by {} ns", start.elapsed().as_nanos());
}
