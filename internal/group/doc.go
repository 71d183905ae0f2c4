// Package group holds caps for the sum of several processes. It is freestanding Go
// (docs/runtime.md), lock-free, and correct whenever a member is killed or stopped.
//
// The members of a group map one file, a [Page]. Each member has a slot in it, and in the slot a
// [Share] of each account: a tier of memory or a device.
//
//	used     what the member has reserved
//	granted  what it may reserve without asking
//	hard     the account's cap, of the group
//
//	used of a member <= granted of it                 but between a step of Charge and the next
//	Σ max(granted, used) over the members <= hard     at every moment, but for bytes that Charge
//	                                                  is about to take back
//
// A member that has reserved all it was granted asks for more ([grant]): it sums what the others
// have, and puts an operation, "member m gets d pages more", in the account's word by
// compare-and-swap. Nobody else was granted anything since it read that word, or the swap fails, so
// the sum still holds. Whoever comes next completes the operation, should the member be killed or
// stopped at that point: the share tells by its tag whether it has been done.
//
// Grants are larger than the request, so that most requests need no sum. Where the cap leaves too
// little, the member takes from the others what they were granted and have not reserved ([take]):
// it lowers granted to used. The owner, which may be reserving at that moment, reads granted again
// after it has raised used, and takes it back if it finds less. One of the two sees the other's
// write, because both write before they read.
//
// A member may have a floor of an account ([setFloor]), which counts as its share before it is
// granted.
//
// # Life and death
//
// A member holds a lock on its slot's byte of the file (an open file description lock). The file
// stays mapped and is closed, so the kernel releases the lock when the mapping ends: after the
// process's memory is gone, by whatever signal. A member that cannot get memory looks for slots
// that nobody holds, and clears them ([reap]). Process numbers play no part, so members may live in
// several PID namespaces, and a number that is used again does no harm.
//
// A forked child leaves its parent's slot and gets a slot of its own, in fork's handler. What it
// shares with the parent stays counted there. Memory that it frees is first subtracted from its own
// reservations, never from the parent's. A vfork child is its parent. After exec the new program
// joins anew.
package group
