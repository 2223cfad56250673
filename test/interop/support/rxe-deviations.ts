/** Cases of `rocev2 conform` that Linux Soft-RoCE fails, or in which it differs, by kernel. packages/inspect/test/conform/results.json has its packets. */

const ALWAYS = ['length/receive-short', 'read/rest-restarts', 'requester/ghost-ack'];

/** By the first two numbers of the kernel. */
export const RXE_DEVIATIONS: Readonly<Record<string, readonly string[]>> = {
  '6.1': [...ALWAYS, 'length/last-empty', 'length/write-2gib', 'length/read-2gib'],
  '6.12': ALWAYS,
};

/** Each ACK restarts the timer of rxe. An emulated guest that pauses for longer than a timeout hides it. */
export const RXE_SOMETIMES: readonly string[] = ['requester/stale-acks'];
