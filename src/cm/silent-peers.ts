/**
 * Connections whose first message has not come yet. They are bounded in total and per address, because anybody can open them; the oldest of
 * the address that has the most makes room.
 */

import type { IpAddress } from '../packet/address.js';
import { type PlaceLimits, Places } from './places.js';

/** A peer of ours is silent for one round trip. */
const SILENT_LIMITS: PlaceLimits = { total: 256, perAddress: 64 };

/** Of one listener. */
export class SilentPeers<T extends { readonly remoteAddress: IpAddress | undefined }> {
  readonly #places = new Places<T>(SILENT_LIMITS);
  readonly #expel: (channel: T) => void;

  /** `expel` ends the connection of one that makes room. */
  constructor(expel: (channel: T) => void) {
    this.#expel = expel;
  }

  /**
   * Calls `listen`, which waits for the first message of the channel, and then `onHeard`, or `onFailed` with what `listen` rejected with. Neither is
   * called for a channel that was expelled meanwhile, or that is gone already.
   */
  async hear(
    channel: T,
    listen: () => Promise<void>,
    onHeard: () => void,
    onFailed: (error: Error) => void,
  ): Promise<void> {
    const { remoteAddress } = channel;
    if (remoteAddress === undefined) return;
    if (this.#places.fullFor(remoteAddress) !== undefined) this.makeRoom(remoteAddress);
    this.#places.enter(channel, remoteAddress);
    const failure = await listen().then(
      () => undefined,
      (error: Error) => error,
    );
    if (!this.#places.leave(channel)) return;
    if (failure === undefined) onHeard();
    else onFailed(failure);
  }

  /** The oldest silent one goes, for a peer from `address` or for whoever needs a descriptor. False: nobody is silent. */
  makeRoom(address?: IpAddress): boolean {
    const oldest = this.#places.inTheWayOf(address, () => true);
    if (oldest === undefined) return false;
    this.#places.leave(oldest);
    this.#expel(oldest);
    return true;
  }

  /** All of them leave their places, and are the caller's. */
  takeAll(): T[] {
    const all = [...this.#places.members];
    for (const channel of all) this.#places.leave(channel);
    return all;
  }
}
