/** What `rocev2-verbs.js` runs: the operations of rigverbs (rig/guest/rigverbs.c), with its output. */

import { setTimeout as sleep } from 'node:timers/promises'; // timer: the operation, and a limit
import { Access, IpAddress, statusText } from '../../../build/src/index.js';

const GRH_BYTES = 40;
const EXIT_NO_COMPLETION = 3;
const EXIT_BAD_COMPLETION = 4;
/** Receives posted later need memory, too, even if none are posted at first. */
const RECEIVE_SLOTS_MIN = 16;
const SYNC = Buffer.from('S');
const WC_RECV = 128;
const WC_RECV_RDMA_WITH_IMM = 129;

export class VerbsOperations {
  #own;
  #peer;
  #tcp;
  #options;
  #ah;
  #receiveMemory;
  #rkey;
  #sendsPosted = 0;
  #sendsDone = 0;
  #receivesPosted = 0;

  static async create(own, peer, tcp, options) {
    const operations = new VerbsOperations();
    operations.#own = own;
    operations.#peer = peer;
    operations.#tcp = tcp;
    operations.#options = options;
    operations.#rkey = peer.rkey;
    if (own.isUd) operations.#ah = await own.pd.createAh(peer.address);
    operations.#receiveMemory = await own.pd.regMr(operations.#slots * operations.#slotBytes, Access.LOCAL_WRITE);
    operations.#postReceives(options.receives);
    return operations;
  }

  /** One operation: [+]NAME[:ARGUMENT ...][*TIMES] */
  async run(text) {
    const [, plus, name, list, times] = /^(\+?)(\w+)((?::\w+)*)(?:\*(\d+))?$/.exec(text);
    const numbers = list.split(':').slice(1);
    const control = this.#controls[name];
    if (control !== undefined) {
      await control(Number(numbers[0] ?? 0));
      return;
    }
    for (let i = 0; i < Number(times ?? 1); i++) this.#post(this.#requests[name](...numbers.map(BigInt)));
    if (plus === '') await this.drain();
  }

  #controls = {
    drain: () => this.drain(),
    recv: (count) => this.#awaitReceives(count),
    post: (count) => this.#postReceives(count),
    fill: (seed) => this.#own.buffer.bytes.set(Uint8Array.from(this.#own.buffer.bytes, (_, i) => 7 * i + seed)),
    dump: (count) => this.#say(this.#own.buffer.bytes.toString('hex', 0, count)),
    sum: (count) => this.#say(`SUM ${fnv1a(this.#own.buffer.bytes.subarray(0, count))}`),
    sync: async () => {
      this.#tcp.write(SYNC);
      await this.#tcp.read(1, 'sync', this.#options.waitMs);
    },
    sleep: (ms) => sleep(ms),
    /** Keeps the event loop, and so the NIC on it, from doing anything. */
    block: (ms) => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms); // timer: the operation
    },
    bind: () => this.#bindWindow(),
    learn: async () => {
      this.#rkey = (await this.#tcp.read(4, 'key', this.#options.waitMs)).readUInt32BE();
    },
    flipkey: (bits) => {
      this.#rkey = (this.#rkey ^ bits) >>> 0;
    },
    unreceive: () => this.#receiveMemory.close(),
  };

  #requests = {
    send: (length) => ({ opcode: 'SEND', ...this.#local(length), ...this.#destination() }),
    sendimm: (length, value) => ({
      opcode: 'SEND_WITH_IMM',
      immediate: Number(value),
      ...this.#local(length),
      ...this.#destination(),
    }),
    sendinv: (length) => ({ opcode: 'SEND_WITH_INV', invalidateRkey: this.#rkey, ...this.#local(length) }),
    write: (length, offset) => ({ opcode: 'RDMA_WRITE', ...this.#local(length), ...this.#remote(offset) }),
    writeimm: (length, value) => ({
      opcode: 'RDMA_WRITE_WITH_IMM',
      immediate: Number(value),
      ...this.#local(length),
      ...this.#remote(),
    }),
    read: (length, offset) => ({ opcode: 'RDMA_READ', ...this.#local(length), ...this.#remote(offset) }),
    faa: (add, offset) => ({ opcode: 'ATOMIC_FETCH_AND_ADD', add, ...this.#local(8), ...this.#remote(offset) }),
    cas: (compare, swap, offset) => ({
      opcode: 'ATOMIC_CMP_AND_SWP',
      compare,
      swap,
      ...this.#local(8),
      ...this.#remote(offset),
    }),
  };

  #local(length) {
    return { sges: Number(length) === 0 ? [] : [this.#own.buffer.sge(0, Number(length))] };
  }

  #remote(offset = 0n) {
    return { remoteAddr: this.#peer.remoteAddr + offset, rkey: this.#rkey };
  }

  #destination() {
    return this.#ah && { ah: this.#ah, remoteQpn: this.#peer.qpn, remoteQkey: this.#options.qkey };
  }

  #post(request) {
    this.#own.qp.postSend({ ...request, wrId: this.#sendsPosted });
    this.#sendsPosted++;
  }

  async #bindWindow() {
    const { pd, buffer } = this.#own;
    const mw = await pd.allocMw(2);
    const rkey = mw.nextRkey();
    const window = { mw, rkey, mr: buffer, offset: 0, length: buffer.length };
    this.#post({ opcode: 'BIND_MW', ...window, access: this.#options.access & ~Access.LOCAL_WRITE });
    await this.drain();
    this.#say(`KEY ${hex32(rkey)}`);
    const key = Buffer.alloc(4);
    key.writeUInt32BE(rkey);
    this.#tcp.write(key);
  }

  get #slots() {
    return Math.max(this.#options.receives, RECEIVE_SLOTS_MIN);
  }

  get #slotBytes() {
    return this.#options.receiveBytes + GRH_BYTES;
  }

  #slotOffset(id) {
    return this.#slotBytes * (id % this.#slots);
  }

  #postReceives(count) {
    const bytes = this.#options.receiveBytes + (this.#own.isUd ? GRH_BYTES : 0);
    for (let i = 0; i < count; i++) {
      const wrId = this.#receivesPosted++;
      this.#own.qp.postRecv({ wrId, sges: [this.#receiveMemory.sge(this.#slotOffset(wrId), bytes)] });
    }
  }

  async drain() {
    while (this.#sendsDone < this.#sendsPosted) {
      const wc = await this.#nextOf(this.#own.sendCq, 'send');
      this.#sendsDone++;
      this.#finish(`SC id=${wc.wrId} status=${wc.status}(${statusText(wc.status)})`, wc);
    }
  }

  async #awaitReceives(count) {
    for (let i = 0; i < count; i++) {
      const wc = await this.#nextOf(this.#own.recvCq, 'receive');
      const isMessage = wc.status === 0 && wc.opcode === 'RECV';
      const opcode = wc.opcode === 'RECV_RDMA_WITH_IMM' ? WC_RECV_RDMA_WITH_IMM : WC_RECV;
      let line = `RC id=${wc.wrId} status=${wc.status}(${statusText(wc.status)}) op=${opcode} len=${wc.byteLen}`;
      if (wc.immediate !== undefined) line += ` imm=${hex32(wc.immediate)}`;
      if (wc.invalidatedRkey !== undefined) line += ` inv=${hex32(wc.invalidatedRkey)}`;
      if (this.#own.isUd) line += ` srcqp=${wc.sourceQpn.toString(16).padStart(6, '0')} from=${this.#senderOf(wc)}`;
      if (isMessage) line += ` fnv=${fnv1a(this.#messageOf(wc))}`;
      this.#finish(line, wc);
    }
  }

  #messageOf(wc) {
    const begin = this.#slotOffset(wc.wrId);
    return this.#receiveMemory.bytes.subarray(begin + (this.#own.isUd ? GRH_BYTES : 0), begin + wc.byteLen);
  }

  /** The source address in the 40 bytes before a datagram: an IPv6 header, or 20 bytes of nothing and an IPv4 header. */
  #senderOf(wc) {
    const header = this.#receiveMemory.bytes.subarray(this.#slotOffset(wc.wrId), this.#slotOffset(wc.wrId) + GRH_BYTES);
    return IpAddress.fromBytes(header[0] >> 4 === 6 ? header.subarray(8, 24) : header.subarray(32, 36)).text;
  }

  async #nextOf(cq, which) {
    const late = sleep(this.#options.waitMs, undefined, { ref: false });
    const wc = await Promise.race([cq.next(), late]);
    if (wc !== undefined) return wc;
    process.stderr.write(`no ${which} completion; counters ${JSON.stringify(this.#own.device.counters())}\n`);
    process.exit(EXIT_NO_COMPLETION);
  }

  #finish(line, wc) {
    this.#say(line);
    if (wc.status !== 0 && !this.#options.carriesOn) process.exit(EXIT_BAD_COMPLETION);
  }

  #say(line) {
    process.stdout.write(`${line}\n`);
  }
}

function hex32(value) {
  return value.toString(16).padStart(8, '0');
}

function fnv1a(bytes) {
  let hash = 2166136261;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 16777619);
  return hex32(hash >>> 0);
}
