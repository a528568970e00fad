//! Serving: if the handler of a claimed ticket panics, its client is lost, but the element is not.

use super::{A, B, DB, Model, NOW, TOLD, Worker, check, number, place, set, with_keys};
use crate::{Guard, Ticket};
use base::sync::atomic::{AtomicU32, Ordering::SeqCst};
use base::sync::{Arc, net, unwind};
use value::Kind;

/// A waiting client, and how its wait ended.
struct Waiter {
    ticket: Arc<Ticket>,
    panics: bool,
    served: AtomicU32,
    /// Its handler panicked: the connection was closed.
    closed: AtomicU32,
    /// It timed out or disconnected.
    ended: AtomicU32,
}

impl Waiter {
    fn new(id: u64, key: &[u8], further: Option<&[u8]>, panics: bool) -> Self {
        let further = further.map(Into::into);
        let ticket = Ticket::new(
            id,
            Kind::String,
            DB,
            [key].into_iter().collect(),
            further,
            false,
            Box::new(()),
        );
        let [served, closed, ended] = [0; 3].map(AtomicU32::new);
        Self { ticket, panics, served, closed, ended }
    }

    fn answers(&self) -> u32 {
        self.served.load(SeqCst) + self.closed.load(SeqCst) + self.ended.load(SeqCst)
    }
}

/// Adds an element; the value of a key is its number of elements.
fn push(guard: &mut Guard<'_>, key: &[u8]) {
    let before = number(guard, key).unwrap_or(0);
    set(guard, key, before + 1, None);
}

/// The handler of a waiter: takes one element, and moves it to the further key if there is one.
fn take(guard: &mut Guard<'_>, waiter: &Waiter, here: &dyn Fn(u32)) {
    let here = |at| {
        if waiter.panics {
            here(at);
        }
    };
    let key = waiter.ticket.keys.get(0).expect("it has one");
    here(0);
    match number(guard, key).expect("only who can be served is") {
        1 => assert!(guard.remove(TOLD, DB, &guard.keyspace().key(key))),
        elements => set(guard, key, elements - 1, None),
    }
    here(1);
    if let Some(further) = &waiter.ticket.destination {
        push(guard, further);
    }
    here(2);
}

/// As `Core::serve` and `Core::serve_one`.
fn serve(guard: &mut Guard<'_>, waiters: &[Waiter], here: &dyn Fn(u32)) {
    while let Some(ready) = guard.next_ready() {
        assert!(guard.covers(guard.keyspace().key(&ready.key).slot));
        while let Some(ticket) = guard.first_ticket_from(&ready, 0) {
            let waiter = &waiters[ticket.id as usize];
            if let Some(further) = &ticket.destination {
                assert!(guard.covers(guard.keyspace().key(further).slot), "served at once");
            }
            guard.exempt_from_turns();
            guard.remove_ticket(&ticket, &ready.key);
            if !ticket.claim() {
                continue;
            }
            if net(|| take(guard, waiter, here)).is_err() {
                guard.rollback();
                waiter.closed.fetch_add(1, SeqCst);
                continue;
            }
            guard.number();
            guard.commit();
            waiter.served.fetch_add(1, SeqCst);
        }
    }
}

/// The waiter times out or its client disconnects: this holds no lock, and leaves the queue
/// afterwards.
fn give_up(worker: &mut Worker, waiter: &Waiter) {
    if waiter.ticket.claim() {
        waiter.ended.fetch_add(1, SeqCst);
    }
    let key = waiter.ticket.keys.get(0).expect("it has one");
    worker
        .run(|access| with_keys(access, &[key], |guard| guard.remove_ticket(&waiter.ticket, key)))
        .expect("it does not panic");
}

/// Checks that no client was answered twice, and that none waits for an existing element.
fn is_fair(model: &Model, waiters: &[Waiter]) {
    for waiter in waiters {
        let (key, answers) = (waiter.ticket.keys.get(0).expect("it has one"), waiter.answers());
        assert_eq!(answers, waiter.ticket.is_claimed().into(), "each is answered once");
        model.with_all(|guard| {
            assert!(answers == 1 || number(guard, key).is_none(), "an element waits for nobody");
            guard.remove_ticket(&waiter.ticket, key);
        });
    }
}

#[test]
fn the_next_one_gets_the_element() {
    check(3_000, || {
        let model = Model::new(4);
        let waiters: Arc<Vec<_>> =
            Arc::new((0..4).map(|id| Waiter::new(id, A, None, id % 2 == 0)).collect());
        model.with_all(|guard| waiters.iter().for_each(|waiter| guard.add_ticket(&waiter.ticket)));
        let of = [0; 4].map(|_| Arc::clone(&waiters));
        let [first, second, third, fourth] = of;
        let pusher = |waiters: Arc<Vec<Waiter>>| {
            move |_: &Model, mut worker: Worker| {
                let here = place(3);
                let ran = worker.run(|access| {
                    with_keys(access, &[A], |guard| {
                        push(guard, A);
                        guard.commit();
                        serve(guard, &waiters, &here);
                    })
                });
                ran.expect("serving has a net of its own");
            }
        };
        model.run_all(vec![
            Box::new(pusher(first)),
            Box::new(pusher(second)),
            Box::new(move |_, mut worker| give_up(&mut worker, &third[0])),
            Box::new(move |_, mut worker| give_up(&mut worker, &fourth[1])),
        ]);
        let served = waiters.iter().map(|waiter| i64::from(waiter.served.load(SeqCst))).sum();
        let left = model.with_all(|guard| number(guard, A)).unwrap_or(0);
        assert_eq!(2 - left, served, "each element is somewhere, once");
        assert!(waiters.iter().all(|waiter| !waiter.panics || waiter.served.load(SeqCst) == 0));
        is_fair(&model, &waiters);
        model.is_whole();
    });
}

/// The first waiter moves its element to a key that has waiters, too. Finding the slots to lock for
/// this may panic as well.
#[test]
fn who_moves_on_leaves_the_further_key_alone() {
    check(3_000, || {
        let model = Model::new(4);
        let waiters = Arc::new(vec![
            Waiter::new(0, A, Some(B), true),
            Waiter::new(1, A, Some(B), false),
            Waiter::new(2, B, None, true),
            Waiter::new(3, B, None, false),
        ]);
        model.with_all(|guard| waiters.iter().for_each(|waiter| guard.add_ticket(&waiter.ticket)));
        let of = [0; 3].map(|_| Arc::clone(&waiters));
        let [first, second, third] = of;
        let pusher = |waiters: Arc<Vec<Waiter>>, is_looking: bool| {
            move |_: &Model, mut worker: Worker| {
                let here = place(3);
                let ran = worker.run(|access| {
                    let slot = access.ks.key(A).slot;
                    let mut guard = access.lock_to_fill(&[slot], false, NOW, || {
                        if is_looking {
                            unwind();
                        }
                        vec![A]
                    })?;
                    push(&mut guard, A);
                    guard.commit();
                    serve(&mut guard, &waiters, &here);
                    Ok(())
                });
                // The keys are not queried if no waiter moves elements any longer.
                assert!(ran.is_ok() || is_looking);
                ran.is_ok()
            }
        };
        let looker = pusher(first, true);
        let [pushes, pushed] = [0; 2].map(|_| Arc::new(AtomicU32::new(0)));
        let counts = [Arc::clone(&pushes), Arc::clone(&pushed)];
        let [count_looker, count_pusher] = counts;
        model.run_all(vec![
            Box::new(move |model, worker| {
                count_looker.fetch_add(looker(model, worker).into(), SeqCst);
            }),
            Box::new({
                let push = pusher(second, false);
                move |model, worker| {
                    count_pusher.fetch_add(push(model, worker).into(), SeqCst);
                }
            }),
            Box::new(move |_, mut worker| give_up(&mut worker, &third[0])),
            Box::new(|_, mut worker| {
                let held = worker.run(|access| with_keys(access, &[A, B], |_| ()));
                held.expect("it does not panic");
            }),
        ]);
        let pushes = i64::from(pushes.load(SeqCst) + pushed.load(SeqCst));
        let taken = waiters[2..].iter().map(|waiter| i64::from(waiter.served.load(SeqCst))).sum();
        let left: i64 =
            model.with_all(|guard| [A, B].map(|key| number(guard, key).unwrap_or(0)).iter().sum());
        assert_eq!(pushes - left, taken, "each element is somewhere, once");
        assert!(waiters.iter().all(|waiter| !waiter.panics || waiter.served.load(SeqCst) == 0));
        is_fair(&model, &waiters);
        model.is_whole();
    });
}
