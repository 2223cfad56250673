/**
 * Answers that no controller gives: completions, data and requests to transfer that are wrong in a field, for commands that there are and are not.
 * A host loses the connection at most: each command is answered or fails, and no byte is written beside the memory of a command.
 */

import { expect } from 'vitest';
import { type RandomSource, randomInt, SeededRandom } from '../../../src/core/random.js';
import { createPipe, type PipeEnd } from '../../../test/storage-rpc/sk/pipe.js';
import { until } from '../../../test/support/virtual-time.js';
import { EventQueue } from '../../lab/src/sim/event-queue.js';
import { HostQueue } from '../src/host/host-queue.js';
import { TcpHostConnection } from '../src/host/tcp-host-connection.js';
import { IO } from '../src/opcodes.js';
import { encodeDataFields, encodeInitialize, encodePdu, NO_DIGESTS, PDU } from '../src/tcp/pdu.js';

const ENTRIES = 16;
const BYTES = 2048;
const GUARD_BYTES = 64;
const GUARD = 0xee;
const HONEST = 0x5a;
/** A connection ends after so many answers, if none of them has ended it. */
const ANSWERS_OF_CONNECTION = 200;

const oneOf = <T>(random: RandomSource, values: readonly T[]): T => values[randomInt(random, 0, values.length - 1)];

/** A PDU with one of its fields out of place, or all right. */
function strangeAnswer(random: RandomSource, command: number): Uint8Array[] {
  const id = oneOf(random, [command, command, randomInt(random, 0, ENTRIES + 2), 0xffff]);
  const type = oneOf(random, [
    PDU.CAPSULE_RESP,
    PDU.C2H_DATA,
    PDU.R2T,
    PDU.C2H_DATA,
    PDU.R2T,
    randomInt(random, 0, 12),
  ]);
  const offset = oneOf(random, [0, 0, 512, BYTES - 4, BYTES, 0xffff_fe00, randomInt(random, 0, 4096)]);
  const length = oneOf(random, [0, 4, 512, BYTES, BYTES + 4, 0xffff_ffff, randomInt(random, 0, 4096)]);
  const fields = encodeDataFields({ id, tag: randomInt(random, 0, 0xffff), offset, length });
  if (type === PDU.CAPSULE_RESP) {
    fields.fill(0);
    fields.writeUInt16LE(id, 12);
    fields.writeUInt16LE(oneOf(random, [0, 0, 0x4004, randomInt(random, 0, 0xffff)]), 14);
  }
  const carried = oneOf(random, [0, Math.min(length, BYTES + 8), 512]);
  const data = type === PDU.C2H_DATA ? Buffer.alloc(carried, 1) : Buffer.alloc(0);
  const pdu = Buffer.concat(
    encodePdu({ type, flags: randomInt(random, 0, 15) & 0xc, specific: fields, data }, NO_DIGESTS),
  );
  if (randomInt(random, 0, 5) === 0) pdu[randomInt(random, 0, 23)] ^= 1 << randomInt(random, 0, 7);
  return [pdu];
}

/** What a controller answers. */
function honestAnswer(pipe: PipeEnd, id: number, isRead: boolean): void {
  const specific = encodeDataFields({ id, tag: 0, offset: 0, length: BYTES });
  const data = Buffer.alloc(BYTES, HONEST);
  if (isRead) pipe.write(encodePdu({ type: PDU.C2H_DATA, flags: 4, specific, data }, NO_DIGESTS));
  const cqe = Buffer.alloc(16);
  cqe.writeUInt16LE(id, 12);
  pipe.write(encodePdu({ type: PDU.CAPSULE_RESP, specific: cqe }, NO_DIGESTS));
}

/** Gives a host so many answers. How many connections it ended, and how many commands succeeded. */
export async function fuzzAnswers(seed: number, answers: number): Promise<{ ended: number; succeeded: number }> {
  const random = new SeededRandom(seed).stream('answers');
  const events = new EventQueue();
  let given = 0;
  let ended = 0;
  let succeeded = 0;
  while (given < answers) {
    const [near, far] = createPipe(events, 1000);
    const isHonest = randomInt(random, 0, 9) === 0;
    const last = given + ANSWERS_OF_CONNECTION;
    far.onData = (bytes) => {
      if (bytes[0] === PDU.IC_REQ) {
        const specific = encodeInitialize({ version: 0, alignment: 0, digests: NO_DIGESTS, limit: 4096 });
        far.write(encodePdu({ type: PDU.IC_RESP, specific }, NO_DIGESTS));
      } else if (bytes[0] === PDU.CAPSULE_CMD) {
        const id = bytes.readUInt16LE(10);
        given++;
        if (isHonest) honestAnswer(far, id, bytes[8] === IO.READ);
        else far.write(strangeAnswer(random, id));
      }
    };
    const queue = new HostQueue(await until(events, TcpHostConnection.over(near, NO_DIGESTS)), ENTRIES);
    queue.connection.inCapsuleBytes = randomInt(random, 0, 1) * BYTES;
    let hasFailed = false;
    queue.onFailure = () => {
      hasFailed = true;
    };
    while (!hasFailed && given < last) {
      const memories = Array.from({ length: 8 }, () => Buffer.alloc(GUARD_BYTES + BYTES + GUARD_BYTES, GUARD));
      const requests = memories.map((memory, i) => {
        const part = memory.subarray(GUARD_BYTES, GUARD_BYTES + BYTES);
        return queue.execute(i % 2 === 0 ? { opcode: IO.READ, into: part } : { opcode: IO.WRITE, out: part });
      });
      const outcomes = Promise.allSettled(requests);
      // A command may wait for ever for an answer that has gone to another one.
      await until(events, Promise.race([outcomes, new Promise<void>((go) => events.after(1e6, go))]));
      if (!isHonest && randomInt(random, 0, 3) === 0) queue.fail(new Error('the test has seen enough'));
      else if (!isHonest) far.write(strangeAnswer(random, randomInt(random, 0, ENTRIES)));
      await until(events, new Promise<void>((go) => events.after(1e5, go)));
      const isDone = await Promise.race([outcomes.then(() => true), Promise.resolve(false)]);
      if (!isDone) queue.fail(new Error('commands were not answered'));
      for (const [i, { status }] of (await until(events, outcomes)).entries()) {
        const memory = memories[i];
        if (status === 'fulfilled') succeeded++;
        const around = [...memory.subarray(0, GUARD_BYTES), ...memory.subarray(GUARD_BYTES + BYTES)];
        expect(around.every((byte) => byte === GUARD)).toBe(true);
        if (!isHonest) continue;
        expect(status).toBe('fulfilled');
        expect(memory[GUARD_BYTES + BYTES - 1]).toBe(i % 2 === 0 ? HONEST : GUARD);
      }
    }
    if (hasFailed) ended++;
    await until(events, queue.close());
  }
  return { ended, succeeded };
}
