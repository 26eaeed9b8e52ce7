//! Threads that take memory from free lists, and give it back from other threads.

use std::collections::BTreeSet;

use shuttle::rand::Rng;
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;

use crate::free_lists::BufferPool;

/// Bytes of two vectors of the size that is kept, and a half.
const MAX: usize = 100_000;

pub(crate) fn run() {
    let pool = BufferPool::new(MAX);
    let owned = Arc::new(Mutex::new(BTreeSet::new()));
    let threads = (0..3u8).map(|id| {
        let (pool, owned) = (pool.clone(), owned.clone());
        thread::spawn(move || {
            let mut others = Vec::new();
            for _ in 0..2 {
                let lists = pool.free_lists();
                let mut memory: Vec<u8> = lists.take(33_000).expect("memory");
                let address = memory.as_ptr() as usize;
                assert!(owned.lock().expect("no panic").insert(address), "memory of two owners");
                memory.push(id);
                thread::yield_now();
                assert_eq!(memory, [id], "another has written there");
                owned.lock().expect("no panic").remove(&address);
                match shuttle::rand::thread_rng().gen_range(0..4) {
                    0 => lists.put_back(memory),
                    1 => {
                        let buffer = lists.pooled(memory);
                        others.push(thread::spawn(move || drop(buffer)));
                    }
                    2 => drop(memory),
                    _ => {
                        lists.put_back(memory);
                        pool.set_max_bytes(MAX / 2);
                        pool.set_max_bytes(MAX);
                    }
                }
                assert!(pool.held_bytes() <= MAX, "more is kept than may be");
            }
            others.into_iter().for_each(|thread| thread.join().expect("no thread fails"));
        })
    });
    let threads: Vec<_> = threads.collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no thread fails"));
    let held = pool.held_bytes();
    let mut taken = 0;
    while pool.held_bytes() > 0 {
        let memory: Vec<u8> = pool.free_lists().take(33_000).expect("memory");
        taken += memory.capacity();
        drop(memory);
    }
    assert_eq!(taken, held, "what is kept is counted");
}
