/**
 * A target that wants to be tested: it accepts connections of one tester at a time, offers memory and a few receives, and does nothing else. What
 * it does with packets is what its NIC does.
 */

import type { CmConnection } from '../cm/cm-connection.js';
import type { CmListener } from '../cm/cm-listener.js';
import type { CmRequest } from '../cm/cm-request.js';
import { initializeQp } from '../cm/qp-parameters.js';
import { NS_PER_S } from '../core/units.js';
import { Access } from '../verbs/access.js';
import type { RdmaDevice } from '../verbs/device.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import { encodeOffer } from './offer.js';

const OPEN_BYTES = 64 * 1024;
const OTHER_BYTES = 4096;
const RECEIVES = 4;
/** A receive has room for two packets of the connection. */
const RECEIVE_PACKETS = 2;
const PATH_MTU_MAX = 4096;
/** 0.08 ms. */
const MIN_RNR_TIMER = 6;
/** READs and atomics that are answered at a time. */
const DEPTH = 4;
/** Connections at a time: one in use, and ones whose end is on its way. */
const CONNECTIONS_MAX = 8;
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

/** A target on one device. Made by {@link ConformService.create}. */
export class ConformService {
  /** So far. */
  readonly counts: ConformServeCounts = { connections: 0, refused: 0 };
  readonly #device: RdmaDevice;
  readonly #memory: Memory;
  readonly #serving = new Set<Promise<void>>();
  #testerAddress = '';

  private constructor(device: RdmaDevice, memory: Memory) {
    this.#device = device;
    this.#memory = memory;
  }

  /** Registers the memory. */
  static async create(device: RdmaDevice): Promise<ConformService> {
    const pd = await device.createPd();
    const foreignPd = await device.createPd();
    return new ConformService(device, {
      pd,
      foreignPd,
      open: await pd.regMr(OPEN_BYTES, Access.REMOTE_ALL),
      readOnly: await pd.regMr(OTHER_BYTES, Access.LOCAL_WRITE | Access.REMOTE_READ),
      foreign: await foreignPd.regMr(OTHER_BYTES, Access.REMOTE_ALL),
      receives: await pd.regMr(RECEIVE_PACKETS * PATH_MTU_MAX, Access.LOCAL_WRITE),
    });
  }

  /** Takes connections until the listener is closed. Those that there are live on, until they end or the connection manager is closed. */
  async serve(listener: CmListener): Promise<void> {
    for await (const request of listener) {
      const isOther = this.#serving.size > 0 && request.remote.text !== this.#testerAddress;
      if (isOther || this.#serving.size >= CONNECTIONS_MAX) {
        this.counts.refused++;
        request.reject();
        continue;
      }
      this.#testerAddress = request.remote.text;
      // A tester that goes away while it connects is its own business.
      const served = this.#serveOne(request)
        .catch(() => {})
        .finally(() => this.#serving.delete(served));
      this.#serving.add(served);
    }
  }

  async #serveOne(request: CmRequest): Promise<void> {
    const { pd, open, readOnly, foreign, receives } = this.#memory;
    const receiveBytes = RECEIVE_PACKETS * request.pathMtu;
    const cq = await this.#device.createCq(2 * RECEIVES);
    const qp = await pd.createQp({ sendCq: cq, maxSendWr: 1, maxRecvWr: RECEIVES });
    try {
      await initializeQp(qp);
      for (let i = 0; i < RECEIVES; i++) qp.postRecv({ sges: [receives.sge(0, receiveBytes)] });
      const connection = await request.accept(qp, {
        responderResources: DEPTH,
        minRnrTimer: MIN_RNR_TIMER,
        privateData: encodeOffer({
          minRnrTimer: MIN_RNR_TIMER,
          receives: RECEIVES,
          receiveBytes,
          open: { address: open.addr, key: open.rkey, bytes: open.length },
          readOnly: { address: readOnly.addr, key: readOnly.rkey },
          foreign: { address: foreign.addr, key: foreign.rkey },
        }),
      });
      this.counts.connections++;
      await this.#untilEnd(connection);
    } finally {
      await qp.close();
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
