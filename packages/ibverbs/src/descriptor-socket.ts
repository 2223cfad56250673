/**
 * Descriptors that programs send to the NIC process (SCM_RIGHTS of unix(7)): one in each datagram, with the token of
 * the context that it is for. A datagram is in the queue before the command that uses it, so it is read only then.
 */

import { closeSync, readlinkSync, rmSync } from 'node:fs';
import { RoceError } from 'rocev2/internal/core';
import { type LibC, libC } from 'rocev2/internal/dgram-ext';

const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC_NONBLOCK = 2 | 0o2000000 | 0o4000;
const MSG_DONTWAIT_CMSG_CLOEXEC = 0x40 | 0x4000_0000;
const SOL_SOCKET = 1;
const SCM_RIGHTS = 1;
const PATH_BYTES_MAX = 107;
/** One struct mmsghdr, its vector, the token, and a control message with room for one descriptor. */
const VECTOR = 64;
const TOKEN = 80;
const CONTROL = 96;
const CONTROL_BYTES = 20;
const BYTES = 128;

export class DescriptorSocket {
  readonly #lib: LibC;
  readonly #path: string;
  readonly #fd: number;
  readonly #view = new DataView(new ArrayBuffer(BYTES));
  readonly #address: number;

  /** Throws ERR_ROCE_IO if the path cannot be bound, and ERR_ROCE_UNSUPPORTED without native calls. */
  constructor(path: string) {
    const lib = libC();
    if (typeof lib === 'string') throw new RoceError('ERR_ROCE_UNSUPPORTED', lib);
    this.#lib = lib;
    this.#path = path;
    this.#address = lib.addressOf(new Uint8Array(this.#view.buffer));
    rmSync(path, { force: true });
    const name = Buffer.from(path);
    const address = Buffer.alloc(PATH_BYTES_MAX + 3);
    address.writeUInt16LE(AF_UNIX);
    name.copy(address, 2);
    this.#fd = lib.socket(AF_UNIX, SOCK_DGRAM_CLOEXEC_NONBLOCK, 0);
    if (name.length > PATH_BYTES_MAX || lib.bind(this.#fd, address, 3 + name.length) < 0) {
      if (this.#fd >= 0) lib.close(this.#fd);
      throw new RoceError('ERR_ROCE_IO', `the socket ${path} cannot be bound`);
    }
  }

  /** Reads all datagrams. Returns the descriptor of /proc/self/mem that came with this token, and closes all others. */
  take(token: number): number | undefined {
    let taken: number | undefined;
    for (let fd = this.#receive(); fd !== undefined; fd = this.#receive()) {
      if (fd < 0) continue;
      const isIt = taken === undefined && this.#view.getBigUint64(TOKEN, true) === BigInt(token) && isMemory(fd);
      if (isIt) taken = fd;
      else closeSync(fd);
    }
    return taken;
  }

  /** The descriptor of the next datagram; -1: it has none. Undefined: there is no datagram. */
  #receive(): number | undefined {
    const view = this.#view;
    const pointer = (offset: number, to: number) => view.setBigUint64(offset, BigInt(this.#address + to), true);
    new Uint8Array(view.buffer).fill(0);
    pointer(16, VECTOR);
    view.setUint32(24, 1, true);
    pointer(32, CONTROL);
    view.setUint32(40, CONTROL_BYTES, true);
    pointer(VECTOR, TOKEN);
    view.setUint32(VECTOR + 8, 8, true);
    if (this.#lib.recvmmsg(this.#fd, this.#address, 1, MSG_DONTWAIT_CMSG_CLOEXEC, 0) !== 1) return undefined;
    const isDescriptor =
      view.getUint32(40, true) >= CONTROL_BYTES &&
      view.getUint32(CONTROL + 8, true) === SOL_SOCKET &&
      view.getUint32(CONTROL + 12, true) === SCM_RIGHTS;
    return isDescriptor ? view.getInt32(CONTROL + 16, true) : -1;
  }

  close(): void {
    this.#lib.close(this.#fd);
    rmSync(this.#path, { force: true });
  }
}

/** Other files of a program could make the NIC process wait. */
function isMemory(fd: number): boolean {
  return /^\/proc\/\d+\/mem$/.test(readlinkSync(`/proc/self/fd/${fd}`));
}
