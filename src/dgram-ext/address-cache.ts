/**
 * Address text of received datagrams -> one IpAddress each, so that the engine compares by identity and nothing is
 * parsed twice.
 */

import { IpAddress } from '../packet/address.js';

/** Bounds the memory that a sender with many source addresses can occupy; a full table is emptied. */
const ADDRESSES_MAX = 1024;

export class AddressCache {
  readonly #known = new Map<string, IpAddress>();
  #lastText = '';
  #last: IpAddress;

  constructor(own: IpAddress) {
    this.#last = own;
  }

  get(text: string): IpAddress {
    if (text === this.#lastText) return this.#last;
    let address = this.#known.get(text);
    if (address === undefined) {
      if (this.#known.size === ADDRESSES_MAX) this.#known.clear();
      // A link-local address carries its interface (`fe80::1%eth0`), which is not part of the address.
      const scope = text.indexOf('%');
      address = IpAddress.parse(scope < 0 ? text : text.slice(0, scope));
      this.#known.set(text, address);
    }
    this.#lastText = text;
    this.#last = address;
    return address;
  }
}
