import type { CmConnection, CmListener, CmRequest } from 'rocev2/internal/cm';
import { NS_PER_S } from 'rocev2/internal/core';
import { type RecoveryOptions, STANDARD_RECOVERY } from 'rocev2/internal/retransmit';
import {
  Access,
  type MemoryRegion,
  type ProtectionDomain,
  type QueuePair,
  type RdmaDevice,
} from 'rocev2/internal/verbs';
import { encodeOffer } from './offer.js';
import { type ParsedWish, parseWish } from './order.js';

const OPEN_BYTES = 64 * 1024;
const OTHER_BYTES = 4096;
const RECEIVES = 4;
const RECEIVE_PACKETS = 2;
const PATH_MTU_MAX = 4096;
/** 0.08 ms. */
const MIN_RNR_TIMER = 6;
const DEPTH = 4;
const ORDERS_MAX = 16;
/** Connections at a time: one in use, and ones whose end is on its way. */
const CONNECTIONS_MAX = 8;
/** The part of the open memory that a window of each connection gives access to, from here on. */
const WINDOW_OFFSET = 32 * 1024;
const WINDOW_BYTES = 4096;
/** A tester that is gone does not keep others out for longer. */
const LIFE_NS = 60 * NS_PER_S;

interface Memory {
  readonly pd: ProtectionDomain;
  readonly foreignPd: ProtectionDomain;
  readonly open: MemoryRegion;
  readonly readOnly: MemoryRegion;
  readonly foreign: MemoryRegion;
  readonly receives: MemoryRegion;
}

/** What a target has served. */
export interface ConformServeCounts {
  /** Connections that were made. */
  connections: number;
  /** Requests that were refused: from others while a tester was connected, or too many at a time. */
  refused: number;
}

export class ConformService {
  readonly counts: ConformServeCounts = { connections: 0, refused: 0 };
  readonly #device: RdmaDevice;
  readonly #memory: Memory;
  readonly #recovery: RecoveryOptions;
  readonly #serving = new Set<Promise<void>>();
  #testerAddress = '';

  private constructor(device: RdmaDevice, memory: Memory, recovery: RecoveryOptions) {
    this.#device = device;
    this.#memory = memory;
    this.#recovery = recovery;
  }

  static async create(device: RdmaDevice, recovery: RecoveryOptions = STANDARD_RECOVERY): Promise<ConformService> {
    const pd = await device.createPd();
    const foreignPd = await device.createPd();
    const memory = {
      pd,
      foreignPd,
      open: await pd.regMr(OPEN_BYTES, Access.REMOTE_ALL | Access.FLUSH_GLOBAL | Access.MW_BIND),
      readOnly: await pd.regMr(OTHER_BYTES, Access.LOCAL_WRITE | Access.REMOTE_READ),
      foreign: await foreignPd.regMr(OTHER_BYTES, Access.REMOTE_ALL),
      receives: await pd.regMr(RECEIVE_PACKETS * PATH_MTU_MAX, Access.LOCAL_WRITE),
    };
    return new ConformService(device, memory, recovery);
  }

  async serve(listener: CmListener): Promise<void> {
    for await (const request of listener) {
      const isOther = this.#serving.size > 0 && request.remote.text !== this.#testerAddress;
      if (isOther || this.#serving.size >= CONNECTIONS_MAX) {
        this.counts.refused++;
        request.reject();
        continue;
      }
      this.#testerAddress = request.remote.text;
      const served = this.#serveOne(request)
        .catch(() => {})
        .finally(() => this.#serving.delete(served));
      this.#serving.add(served);
    }
  }

  async #serveOne(request: CmRequest): Promise<void> {
    const { pd, open, readOnly, foreign, receives } = this.#memory;
    const receiveBytes = RECEIVE_PACKETS * request.pathMtu;
    const wish = parseWish(request.privateData);
    const cq = await this.#device.createCq(RECEIVES + ORDERS_MAX + 1);
    const qp = await pd.createQp({ sendCq: cq, maxSendWr: ORDERS_MAX + 1, maxRecvWr: RECEIVES });
    const window = await pd.allocMw(2);
    const windowKey = window.nextRkey();
    try {
      await qp.modify({
        state: 'INIT',
        pkeyIndex: 0,
        port: 1,
        accessFlags: wish?.isClosed === true ? 0 : Access.REMOTE_ALL | Access.FLUSH_GLOBAL,
        recovery: this.#recovery,
      });
      for (let i = 0; i < RECEIVES; i++) qp.postRecv({ sges: [receives.sge(0, receiveBytes)] });
      const connection = await request.accept(qp, {
        responderResources: DEPTH,
        minRnrTimer: MIN_RNR_TIMER,
        ...(wish?.startPsn !== undefined && { startingPsn: wish.startPsn }),
        privateData: encodeOffer({
          minRnrTimer: MIN_RNR_TIMER,
          receives: RECEIVES,
          receiveBytes,
          open: { address: open.addr, key: open.rkey, bytes: open.length },
          readOnly: { address: readOnly.addr, key: readOnly.rkey },
          foreign: { address: foreign.addr, key: foreign.rkey },
          window: { address: open.addr + BigInt(WINDOW_OFFSET), key: windowKey },
          flushes: true,
        }),
      });
      this.counts.connections++;
      if (qp.state === 'RTS') {
        qp.postSend({
          opcode: 'BIND_MW',
          mw: window,
          rkey: windowKey,
          mr: open,
          offset: WINDOW_OFFSET,
          length: WINDOW_BYTES,
          access: Access.REMOTE_WRITE,
        });
        if (wish !== undefined) post(qp, open, wish);
      }
      await this.#untilEnd(connection);
    } finally {
      await qp.close();
      await window.close();
      await cq.close();
    }
  }

  async #untilEnd(connection: CmConnection): Promise<void> {
    const { clock } = this.#device;
    const cancel = clock.wakeAt(clock.nowNs() + LIFE_NS, () => void connection.disconnect());
    await connection.disconnected;
    cancel();
  }
}

function post(qp: QueuePair, memory: MemoryRegion, { order, address, key }: ParsedWish): void {
  if (order === undefined) return;
  const { operation, bytes, count } = order;
  const sges = [memory.sge(0, Math.min(bytes, memory.length))];
  const remote = { remoteAddr: address, rkey: key };
  for (let i = 0; i < Math.min(count, ORDERS_MAX); i++) {
    if (operation === 'SEND') qp.postSend({ opcode: 'SEND', sges });
    else if (operation === 'FETCH_ADD')
      qp.postSend({ opcode: 'ATOMIC_FETCH_AND_ADD', sges: [memory.sge(0, 8)], add: 1n, ...remote });
    else qp.postSend({ opcode: operation, sges, ...remote });
  }
}
