/** The door of a server on a TCP or Unix socket: bounded in total and per address, and who is not served yet makes room for who comes. */

import type { Socket } from 'node:net';
import { Crowd } from '../cm/crowd.js';
import { tcpAddress } from '../cm/tcp-address.js';
import { IpAddress } from '../packet/address.js';

/** Peers on a Unix socket have no address; they are one host. */
const THIS_HOST = IpAddress.parse('127.0.0.1');

/** How many connections may be in. */
export interface DoorLimits {
  /** From all addresses together. */
  readonly total: number;
  /** From one address. */
  readonly perAddress: number;
}

interface Guest {
  readonly socket: Socket;
  readonly remote: IpAddress;
  /** Whether it has said what it came for, in full; then for good. */
  readonly isServed: () => boolean;
}

/** Keeps the connections of one server. */
export class Door {
  /** Connections that were closed because another one needed the place, or that found none. */
  turnedAway = 0;
  readonly #limits: DoorLimits;
  readonly #guests = new Crowd<Guest>();
  /** Those of them that were not served when they were last looked at. */
  readonly #waiting = new Crowd<Guest>();

  constructor(limits: DoorLimits) {
    this.#limits = limits;
  }

  /**
   * Lets a connection in. Without a place the oldest that is not served yet goes, of the same address when that has its share, else of the
   * address that has the most. When all are served the newcomer is closed: false.
   */
  admit(socket: Socket, isServed: () => boolean): boolean {
    const guest = { socket, remote: tcpAddress(socket.remoteAddress) ?? THIS_HOST, isServed };
    if (!this.#makeRoomFrom(guest.remote)) {
      socket.destroy();
      return false;
    }
    this.#guests.add(guest);
    this.#waiting.add(guest);
    socket.once('close', () => this.#leave(guest));
    return true;
  }

  /** False: there is none, and nobody may be asked to go. */
  #makeRoomFrom(remote: IpAddress): boolean {
    const { total, perAddress } = this.#limits;
    const hasItsShare = this.#guests.countOf(remote) >= perAddress;
    if (!hasItsShare && this.#guests.size < total) return true;
    this.turnedAway++;
    const oldest = () => (hasItsShare ? this.#waiting.oldestOf(remote) : this.#waiting.oldestOfFullest());
    for (let guest = oldest(); guest !== undefined; guest = oldest()) {
      this.#waiting.delete(guest);
      if (guest.isServed()) continue;
      this.#leave(guest);
      guest.socket.destroy();
      return true;
    }
    return false;
  }

  #leave(guest: Guest): void {
    this.#guests.delete(guest);
    this.#waiting.delete(guest);
  }
}
