/**
 * The boundary ("PCIe") between application and NIC: shared memory, doorbells and interrupts. The inline engine
 * implements it with calls on one event loop, the worker engine with shared memory and messages.
 */

import type { Clock } from '../../core/clock.js';
import type { RoceError } from '../../core/errors.js';
import type { IpAddress } from '../../packet/address.js';
import type { MemoryMapping } from '../mapped/memory-mapping.js';
import type { CommandRing } from './command-ring.js';
import type { EventRing } from './event-ring.js';
import type { Protection } from './protection.js';

/** Its clock is the engine's, read on this side: the time base of everything the NIC stamps. */
export interface EngineLink extends Clock {
  allocate(bytes: number): ArrayBufferLike;
  /**
   * Populates the pages of memory that {@link EngineLink.allocate} has just made, so that no transfer waits for them,
   * if the system supports it.
   */
  populate(bytes: Uint8Array): void;
  /** Whether the NIC can reach memory of this kind: a NIC in another thread only shared memory. */
  reaches(memory: ArrayBufferLike): boolean;
  /** Makes memory reachable for the NIC and names it; command arguments carry the number. */
  attach(memory: ArrayBufferLike): number;
  /** Undoes one {@link EngineLink.attach}. Throws ERR_ROCE_NOT_FOUND for a number that is not attached. */
  detach(memoryId: number): void;
  readonly commands: CommandRing;
  readonly events: EventRing;
  /**
   * One number per counter, in the order of {@link COUNTER_NAMES}; written by the NIC, except those that {@link
   * EngineLink.refreshCounters} updates.
   */
  readonly counters: Float64Array;
  ringCommands(): void;
  /** Informs the NIC that the send queue, or (after an error) the receive queue, of this QP has new elements. */
  ringDoorbell(qpn: number): void;
  /**
   * Processes arrived datagrams and sends packets within this call; bounded. False: not done. Absent: polled
   * elsewhere. See `RdmaDevice.poll`.
   */
  poll?(): boolean;
  /** Called by the NIC's side when the event ring has new events, never from inside a call of this side. */
  onInterrupt: () => void;
  /** Called once when the NIC has failed: pending requests are not answered, and nothing is called back afterwards. */
  onFailure: (cause: RoceError) => void;
  /**
   * Makes sure that packets to this address can leave at once: resolves its link-layer address where the port has one.
   * `sharingPort`: the UDP port of a peer of the same {@link EngineLink.memoryDomain}; a ring in memory is offered to
   * it, and the promise waits a moment for the peer to take it.
   */
  resolve(address: IpAddress, sharingPort?: number): Promise<boolean>;
  /** Only when no packet to it is in flight. */
  unshare(address: IpAddress, udpPort: number): void;
  /** Names the processes that the port can share memory with: those that have the same. */
  readonly memoryDomain: string | undefined;
  /** Memory that peers of the same {@link EngineLink.memoryDomain} can map; undefined where it is not to be had. */
  readonly mapping: MemoryMapping | undefined;
  /** Takes the keys of peers; undefined where packets are not protected. */
  readonly protection: Protection | undefined;
  /** The path MTU that gets through to this address as currently known to the system; undefined if unknown. */
  pathMtuTowards(address: IpAddress): number | undefined;
  /** Updates those of {@link EngineLink.counters} that the system keeps, not the NIC. */
  refreshCounters(): void;
  readonly portDescription: string;
  /** Nothing is called back afterwards. */
  close(): Promise<void>;
}
