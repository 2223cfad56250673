import type { RandomSource } from '../core/random.js';
import type { MemoryMapping } from '../memory/mapped/memory-mapping.js';
import type { Protection } from '../memory/ring/protection.js';
import { Engine } from '../nic/engine.js';
import type { IpAddress } from '../packet/address.js';
import { EventLoopPoller } from './event-loop-poller.js';
import type { OpenPort } from './open-port.js';
import { populate } from './populate.js';
import { nowNs, SYSTEM_CLOCK } from './system-clock.js';

export class InlineEngine extends Engine {
  readonly #opened: OpenPort;
  readonly #poller: EventLoopPoller;

  constructor(opened: OpenPort, random: RandomSource) {
    super(opened.port, random, opened.tuning);
    this.#opened = opened;
    this.#poller = new EventLoopPoller(this.nic, opened.port, undefined, opened.batched);
    opened.countInto(this.counters);
    opened.trace?.watch({ counters: this.counters, visitRates: (visit) => this.nic.visitRates(nowNs(), visit) });
  }

  override get portDescription(): string {
    return this.#opened.description;
  }

  override resolve(address: IpAddress, sharingPort?: number): Promise<boolean> {
    return this.#opened.resolve(address, sharingPort);
  }

  override unshare(address: IpAddress, udpPort: number): void {
    this.#opened.unshare(address, udpPort);
  }

  override get memoryDomain(): string | undefined {
    return this.#opened.memoryDomain;
  }

  override get mapping(): MemoryMapping | undefined {
    return this.#opened.mapping;
  }

  override get protection(): Protection | undefined {
    return this.#opened.protection;
  }

  override pathMtuTowards(address: IpAddress): number | undefined {
    return this.#opened.hostInfo?.pathMtuTowards(address);
  }

  override refreshCounters(): void {
    this.#opened.hostInfo?.refreshCounters(this.counters);
  }

  override populate(bytes: Uint8Array): void {
    populate(bytes);
  }

  override nowNs(): number {
    return nowNs();
  }

  override wakeAt(timeNs: number, wake: () => void): () => void {
    return SYSTEM_CLOCK.wakeAt(timeNs, wake);
  }

  override async close(): Promise<void> {
    this.#poller.close();
    await this.#opened.close();
  }

  poll(): boolean {
    return this.#poller.pollNow();
  }

  override ringDoorbell(qpn: number): void {
    this.nic.doorbell(qpn);
    this.#poller.onDoorbell();
  }

  protected override pollSoon(): void {
    this.#poller.pollSoon();
  }
}
