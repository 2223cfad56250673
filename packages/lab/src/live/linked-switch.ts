/** Invariant: a frame's slot is released only when the link has taken it. */

import { nowNs, timeoutMs } from 'rocev2/internal/driver';
import { Switch, type SwitchOptions } from '../switch/switch.js';
import type { SwitchPortCounters } from '../switch/switch-counters.js';
import type { SwitchSnapshot } from '../switch/switch-snapshot.js';
import type { FrameLink } from './frame-link.js';
import { LinkPacer } from './link-pacer.js';

/** A timer may come a millisecond late: a frame that a rule holds back is waited for without one at the end. */
const SPIN_NS = 1e6;

/** What the switch counts, and what only its links know. */
export interface LiveSwitchPortCounters extends SwitchPortCounters {
  /** Frames from somebody else than the port's peer; not part of `rx_packets`. */
  rx_unknown_peers: number;
  /** Frames that the system refused, or that had no peer to go to; part of `tx_packets`. */
  tx_errors: number;
}

export interface LinkedPort {
  readonly name: string;
  readonly link: FrameLink;
}

export type FrameTap = (port: number, bytes: Uint8Array, offset: number, length: number) => void;

export interface LinkedSwitchOptions extends Omit<SwitchOptions, 'ports'> {
  readonly ports: readonly LinkedPort[];
  readonly tap?: FrameTap;
}

class Port {
  readonly name: string;
  readonly link: FrameLink;
  readonly pacer: LinkPacer;
  readonly unsent: number[] = [];

  constructor({ name, link }: LinkedPort, rateBps: number) {
    this.name = name;
    this.link = link;
    this.pacer = new LinkPacer(rateBps);
  }
}

export class LinkedSwitch {
  readonly #switch: Switch;
  readonly #ports: readonly Port[];
  readonly #tap: FrameTap | undefined;
  #timer: NodeJS.Timeout | undefined;
  #timerNs = Number.POSITIVE_INFINITY;
  #isSpinning = false;
  #closing: Promise<void> | undefined;

  constructor({ ports, tap, ...rest }: LinkedSwitchOptions) {
    this.#switch = new Switch({ ...rest, ports: ports.map(({ name }) => name) });
    this.#tap = tap;
    this.#ports = ports.map((port) => {
      const rateBps = rest.portConfig?.[port.name]?.rateBps ?? rest.portDefaults?.rateBps;
      return new Port(port, rateBps ?? Number.POSITIVE_INFINITY);
    });
    this.#ports.forEach(({ link }, number) => {
      link.onFrame = (bytes, offset, length) => {
        tap?.(number, bytes, offset, length);
        this.#switch.receive(number, bytes, offset, length, nowNs());
      };
      link.onFrames = () => this.#poll(nowNs());
    });
  }

  snapshot(): SwitchSnapshot {
    return this.#switch.snapshot(nowNs());
  }

  get counters(): Readonly<Record<string, LiveSwitchPortCounters>> {
    const counters = this.#switch.counters;
    return Object.fromEntries(
      this.#ports.map(({ name, link }) => [
        name,
        { ...counters[name], rx_unknown_peers: link.unknownPeers, tx_errors: link.errors },
      ]),
    );
  }

  close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#closing ??= Promise.all(this.#ports.map(({ link }) => link.close())).then(() => {});
    return this.#closing;
  }

  #poll(now: number): void {
    if (this.#closing !== undefined) return;
    if (this.#switch.nextDeadlineNs <= now) this.#switch.onDeadline(now);
    for (let port = 0; port < this.#ports.length; port++)
      if (this.#ports[port].pacer.nextNs <= now) this.#drain(port, now);
    // A frame that leaves may let the sender of another port continue.
    for (let port = this.#switch.nextReady(); port >= 0; port = this.#switch.nextReady()) this.#drain(port, now);
    const { nextReleaseNs } = this.#switch;
    if (nextReleaseNs - now < SPIN_NS) this.#spin();
    let nextNs = Math.min(this.#switch.nextDeadlineNs, nextReleaseNs - SPIN_NS);
    for (const { pacer } of this.#ports) nextNs = Math.min(nextNs, pacer.nextNs);
    this.#wakeAt(nextNs, now);
  }

  #spin(): void {
    if (this.#isSpinning) return;
    this.#isSpinning = true;
    setImmediate(() => {
      this.#isSpinning = false;
      this.#poll(nowNs());
    });
  }

  #wakeAt(timeNs: number, now: number): void {
    // A timer that fires early only finds that nothing is due.
    if (timeNs >= this.#timerNs) return;
    clearTimeout(this.#timer);
    this.#timerNs = timeNs;
    this.#timer = setTimeout(this.#onTimer, timeoutMs(timeNs - now));
  }

  readonly #onTimer = (): void => {
    this.#timerNs = Number.POSITIVE_INFINITY;
    this.#poll(nowNs());
  };

  #drain(number: number, now: number): void {
    const port = this.#ports[number];
    const { pacer, link, unsent } = port;
    if (unsent.length > 0 && link.flush()) this.#releaseAll(unsent);
    while (pacer.mayStart(now)) {
      const slot = this.#switch.take(number, now);
      if (slot < 0) {
        pacer.idle();
        break;
      }
      const length = this.#switch.slotLength(slot);
      pacer.sent(length);
      unsent.push(slot);
      if (link.address !== undefined) link.address(this.#switch.slotBytes(slot), 0, length);
      this.#tap?.(number, this.#switch.slotBytes(slot), 0, length);
      link.send(this.#switch.frame(slot));
    }
    if (unsent.length > 0 && link.flush()) this.#releaseAll(unsent);
  }

  #releaseAll(slots: number[]): void {
    for (const slot of slots) this.#switch.release(slot);
    slots.length = 0;
  }
}
