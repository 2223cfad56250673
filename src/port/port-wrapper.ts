/**
 * A port around another one: everything passes through. Wrappers (capture, faults) override what they change, and
 * compose in any order.
 */

import type { IpAddress } from '../packet/address.js';
import type { IpIdPolicy, Port, PortCounters, RxDatagram, TxBatch } from './datagram.js';

/** Delegates all of {@link Port} to another port. A subclass changes one or both directions. */
export abstract class PortWrapper implements Port {
  /** The port that is wrapped; its `onDatagram` belongs to the wrapper. */
  protected readonly inner: Port;
  onDatagram: (datagram: RxDatagram) => void = () => {};

  constructor(inner: Port) {
    this.inner = inner;
    inner.onDatagram = (datagram) => this.receive(datagram);
  }

  /** A datagram from the inner port: passed on by `onDatagram`, or dropped. */
  protected abstract receive(datagram: RxDatagram): void;
  abstract get description(): string;
  abstract sendBatch(batch: TxBatch): void;

  get address(): IpAddress {
    return this.inner.address;
  }

  get udpPort(): number {
    return this.inner.udpPort;
  }

  get pathMtuMax(): number {
    return this.inner.pathMtuMax;
  }

  get ipIdPolicy(): IpIdPolicy {
    return this.inner.ipIdPolicy;
  }

  get fixedSourcePort(): number | undefined {
    return this.inner.fixedSourcePort;
  }

  get receiveBudgetPackets(): number {
    return this.inner.receiveBudgetPackets;
  }

  get counters(): Readonly<PortCounters> {
    return this.inner.counters;
  }

  get onPause(): (priority: number, durationNs: number) => void {
    return this.inner.onPause;
  }

  set onPause(handler: (priority: number, durationNs: number) => void) {
    this.inner.onPause = handler;
  }

  get onError(): (error: Error) => void {
    return this.inner.onError;
  }

  set onError(handler: (error: Error) => void) {
    this.inner.onError = handler;
  }

  open(): Promise<void> {
    return this.inner.open();
  }

  close(): Promise<void> {
    return this.inner.close();
  }

  beginBatch(): TxBatch | undefined {
    return this.inner.beginBatch();
  }
}
