/**
 * The command ring: control operations are written by the application and answered in place by the NIC, in order.
 *
 * Element, 1024 bytes: 0 u32 command code, 4 u32 status (0 ok, else 1 + index into ERROR_CODES), 8 u32 length of the
 * error text, 16.. arguments; the answer's fields, or the error text, replace the arguments.
 */

import { ERROR_CODES, RoceError } from '../../core/errors.js';
import {
  COMMANDS,
  type CommandArgs,
  type CommandName,
  type CommandResult,
  checkU32Fields,
  commandNameOf,
  decodeFields,
  encodeFields,
} from './commands.js';
import { createRingMemory, Ring } from './ring.js';

/** Commands of a device that may wait for their answers at once; more wait outside. */
export const COMMAND_DEPTH = 64;
const ELEMENT_BYTES = 1024;
const BODY_OFFSET = 16;
const TEXT_BYTES_MAX = ELEMENT_BYTES - BODY_OFFSET;

export class CommandRing extends Ring {
  /** The application's side over new memory. `depth` is rounded up to a power of two. */
  static create(allocate: (bytes: number) => ArrayBufferLike, depth: number): CommandRing {
    return new CommandRing(createRingMemory(allocate, depth, ELEMENT_BYTES));
  }

  constructor(memory: ArrayBufferLike) {
    super(memory, ELEMENT_BYTES);
  }

  get isFull(): boolean {
    return this.fill >= this.depth;
  }

  /** The caller has checked `isFull`. */
  submit<N extends CommandName>(name: N, args: CommandArgs<N>): number {
    checkU32Fields(COMMANDS[name].in, args);
    const index = this.producer;
    const o = this.offsetOf(index);
    this.view.setUint32(o, COMMANDS[name].code, true);
    encodeFields(this.view, o + BODY_OFFSET, COMMANDS[name].in, args);
    this.producer = (index + 1) >>> 0;
    return index;
  }

  /** Throws the NIC's refusal. */
  answer<N extends CommandName>(index: number, name: N): CommandResult<N> {
    const o = this.offsetOf(index);
    const status = this.view.getUint32(o + 4, true);
    if (status !== 0) {
      // Copied, because a TextDecoder refuses shared memory.
      const text = this.bytes.slice(o + BODY_OFFSET, o + BODY_OFFSET + this.view.getUint32(o + 8, true));
      throw new RoceError(ERROR_CODES[status - 1], new TextDecoder().decode(text));
    }
    return decodeFields(this.view, o + BODY_OFFSET, COMMANDS[name].out) as CommandResult<N>;
  }

  /** A thrown RoceError becomes the answer. */
  drain(
    execute: <N extends CommandName>(name: N, args: CommandArgs<N>) => CommandResult<N>,
    end: number = this.producer,
  ): number {
    let done = 0;
    for (let index = this.consumer; index !== end; index = (index + 1) >>> 0) {
      const o = this.offsetOf(index);
      const name = commandNameOf(this.view.getUint32(o, true));
      try {
        if (name === undefined) throw new RoceError('ERR_ROCE_UNSUPPORTED', 'the NIC does not know this command');
        const args = decodeFields(this.view, o + BODY_OFFSET, COMMANDS[name].in) as CommandArgs<typeof name>;
        encodeFields(this.view, o + BODY_OFFSET, COMMANDS[name].out, execute(name, args));
        this.view.setUint32(o + 4, 0, true);
      } catch (error) {
        if (!(error instanceof RoceError)) throw error;
        const text = new TextEncoder().encode(error.message).subarray(0, TEXT_BYTES_MAX);
        this.bytes.set(text, o + BODY_OFFSET);
        this.view.setUint32(o + 8, text.length, true);
        this.view.setUint32(o + 4, 1 + ERROR_CODES.indexOf(error.code), true);
      }
      this.consumer = (index + 1) >>> 0;
      done++;
    }
    return done;
  }
}
