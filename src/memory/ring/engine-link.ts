/**
 * The "PCIe" between application and NIC. Everything that crosses it is here: shared memory, doorbells, and interrupts. The inline
 * engine implements it with calls on one event loop; a NIC in another thread with shared memory and messages. Nothing above or below
 * knows which.
 */

import type { Clock } from '../../core/clock.js';
import type { RoceError } from '../../core/errors.js';
import type { IpAddress } from '../../packet/address.js';
import type { CommandRing } from './command-ring.js';
import type { EventRing } from './event-ring.js';
import type { Protection } from './protection.js';

/** What the application has of its NIC. Its clock is the engine's, read on this side: the time base of everything the NIC stamps. */
export interface EngineLink extends Clock {
  /** Plain or shared memory, whichever the NIC can reach. */
  allocate(bytes: number): ArrayBufferLike;
  /** Gives memory that {@link EngineLink.allocate} has just made its pages, so that no transfer waits for them; where there is a system that does so. */
  populate(memory: ArrayBufferLike): void;
  /** Whether the NIC can reach memory of this kind: a NIC in another thread only shared memory. */
  reaches(memory: ArrayBufferLike): boolean;
  /** Makes memory reachable for the NIC and names it; command arguments carry the number. Throws when the NIC cannot reach this kind. */
  attach(memory: ArrayBufferLike): number;
  /** Gives one {@link EngineLink.attach} back. Throws ERR_ROCE_NOT_FOUND for a number that is not attached. */
  detach(memoryId: number): void;
  /** Control operations, in order. */
  readonly commands: CommandRing;
  /** Notices from the NIC. */
  readonly events: EventRing;
  /** One number a counter, in the order of {@link COUNTER_NAMES}; written by the NIC, but for what {@link EngineLink.refreshCounters} brings. */
  readonly counters: Float64Array;
  /** Tells the NIC to look at the command ring. */
  ringCommands(): void;
  /** Tells the NIC that the send queue, or (after an error) the receive queue, of this QP has new elements. */
  ringDoorbell(qpn: number): void;
  /** Takes in what has arrived and sends what there is, within this call; bounded. False: not done. Absent: polled elsewhere. See `RdmaDevice.poll`. */
  poll?(): boolean;
  /** Called by the NIC's side, never from inside a call of ours, when the event ring has something new. */
  onInterrupt: () => void;
  /**
   * Called once when the NIC has ended by itself: nothing that was asked is answered any more, and nothing is called back afterwards. `cause` has the
   * code ERR_ROCE_CLOSED.
   */
  onFailure: (cause: RoceError) => void;
  /**
   * Makes sure that packets to this address can leave at once: resolves its link-layer address where the port has one. `sharingPort`: the UDP port of a
   * peer of the same {@link EngineLink.memoryDomain}; a ring in memory is offered to it, and the promise waits a moment for the peer to take it. True: it has.
   */
  resolve(address: IpAddress, sharingPort?: number): Promise<boolean>;
  /** Takes back the ring that {@link EngineLink.resolve} has offered to the peer. Only when nothing is on its way to it. Nothing happens where there is none. */
  unshare(address: IpAddress, udpPort: number): void;
  /** Names the processes that the port can share memory with: those that have the same. Undefined: none. */
  readonly memoryDomain: string | undefined;
  /** Takes the keys of peers; undefined where packets are not protected. */
  readonly protection: Protection | undefined;
  /** The path MTU that gets through to this address as far as the system knows by now; undefined where it cannot say. */
  pathMtuTowards(address: IpAddress): number | undefined;
  /** Brings those of {@link EngineLink.counters} up to date that the system keeps, not the NIC. */
  refreshCounters(): void;
  /** For people: which port carries the packets. */
  readonly portDescription: string;
  /** Stops the NIC and closes its port; resolves as well when it has ended by itself. Nothing is called back afterwards. */
  close(): Promise<void>;
}
