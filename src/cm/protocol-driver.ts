/** Runs `CmProtocol` on a device: QP1 carries its datagrams, and the clock wakes it. */

import { randomBytes } from 'node:crypto';
import type { Clock } from '../core/clock.js';
import type { Optional } from '../core/defaults.js';
import type { RandomSource } from '../core/random.js';
import type { IpAddress } from '../packet/address.js';
import type { RdmaDevice } from '../verbs/device.js';
import { type CmLimits, checkedLimits } from './cm-limits.js';
import { CmProtocol } from './cm-protocol.js';
import { GsiChannel } from './gsi.js';
import { pathMtuCode } from './qp-parameters.js';
import { ackTimeoutCode, type CmTiming, LINUX_TIMING } from './timing.js';

export interface ProtocolDriverOptions {
  readonly timing?: CmTiming | undefined;
  readonly limits?: Optional<CmLimits> | undefined;
  readonly anyClaimedAddress?: boolean | undefined;
  readonly dscp?: number | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: RandomSource | undefined;
}

export class ProtocolDriver {
  readonly protocol: CmProtocol;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** The Local ACK Timeout that is offered to peers, as a code. */
  readonly ackTimeout: number;
  readonly #device: RdmaDevice;
  readonly #dscp: number;
  #gsi: GsiChannel | undefined;
  #cancelWake: () => void = () => {};
  #wakeNs = Number.POSITIVE_INFINITY;
  #isStopped = false;

  constructor(device: RdmaDevice, options: ProtocolDriverOptions = {}) {
    this.#device = device;
    this.clock = options.clock ?? device.clock;
    this.random = options.random ?? { u32: () => randomBytes(4).readUInt32BE() };
    this.#dscp = options.dscp ?? 0;
    const timing = options.timing ?? LINUX_TIMING;
    this.ackTimeout = ackTimeoutCode(timing);
    this.protocol = new CmProtocol({
      address: device.address,
      pathMtuCodeMax: pathMtuCode(device.attributes.pathMtuMax),
      random: this.random,
      timing,
      dscp: this.#dscp,
      limits: checkedLimits(options.limits),
      anyClaimedAddress: options.anyClaimedAddress === true,
      send: (to, mad) => this.#gsi?.send(to, mad),
    });
  }

  /** Takes QP1. Rejects with ERR_ROCE_BUSY if the device has one already. */
  async open(): Promise<void> {
    const onMad = (source: IpAddress, mad: Uint8Array) => {
      this.protocol.receive(source, mad, this.clock.nowNs());
      this.setTimer();
    };
    this.#gsi = await GsiChannel.open(this.#device, onMad, this.#dscp);
  }

  /** To be called after each call of the protocol that may have started or ended a wait. */
  setTimer(): void {
    const next = this.#isStopped ? Number.POSITIVE_INFINITY : this.protocol.nextDeadlineNs;
    if (next === this.#wakeNs) return;
    this.#cancelWake();
    this.#wakeNs = next;
    if (next === Number.POSITIVE_INFINITY) return;
    this.#cancelWake = this.clock.wakeAt(next, () => {
      this.#wakeNs = Number.POSITIVE_INFINITY;
      this.protocol.onDeadline(this.clock.nowNs());
      this.setTimer();
    });
  }

  /** No deadline wakes it afterwards. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelWake();
  }

  /** Releases QP1 when everything has been sent. */
  async close(): Promise<void> {
    this.stop();
    await this.#gsi?.close();
  }
}
