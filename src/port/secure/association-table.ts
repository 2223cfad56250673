import { RoceError } from '../../core/errors.js';
import type { IpAddress } from '../../packet/address.js';
import type { Association } from './association.js';

/** A peer without associations: no array is made for a look-up. */
const NONE: readonly Association[] = [];

export class AssociationTable {
  readonly #bySpi = new Map<number, Association>();
  /** Newest last: a peer connected several times has several, which are equally good. */
  readonly #byPeer = new Map<string, Association[]>();

  get all(): Iterable<Association> {
    return this.#bySpi.values();
  }

  add(association: Association): void {
    const { spi, peer } = association.terms;
    if (this.#bySpi.has(spi)) {
      throw new RoceError('ERR_ROCE_CONFLICT', `the SPI 0x${spi.toString(16)} is in use`, 'connect again');
    }
    this.#bySpi.set(spi, association);
    const ofPeer = this.#byPeer.get(peer);
    if (ofPeer === undefined) this.#byPeer.set(peer, [association]);
    else ofPeer.push(association);
  }

  remove(spi: number): Association | undefined {
    const association = this.#bySpi.get(spi);
    if (association === undefined) return undefined;
    this.#bySpi.delete(spi);
    const { peer } = association.terms;
    const others = this.#byPeer.get(peer)!.filter((other) => other !== association);
    if (others.length === 0) this.#byPeer.delete(peer);
    else this.#byPeer.set(peer, others);
    return association;
  }

  bySpi(spi: number): Association | undefined {
    return this.#bySpi.get(spi);
  }

  /**
   * The newest one that may be used to send there: of the lasting ones, or else of the ending ones, whose last packets
   * also have to leave.
   */
  towards(address: IpAddress, udpPort: number): Association | undefined {
    const ofPeer = this.#byPeer.get(address.text) ?? NONE;
    let ending: Association | undefined;
    for (let i = ofPeer.length - 1; i >= 0; i--) {
      const { isStarted, isRetired, terms } = ofPeer[i];
      if (!isStarted || terms.peerUdpPort !== udpPort) continue;
      if (!isRetired) return ofPeer[i];
      ending ??= ofPeer[i];
    }
    return ending;
  }

  protects(address: IpAddress, udpPort: number): boolean {
    const ofPeer = this.#byPeer.get(address.text) ?? NONE;
    for (let i = 0; i < ofPeer.length; i++) {
      const { isStarted, terms } = ofPeer[i];
      if (isStarted && (!terms.hasFixedPort || terms.peerUdpPort === udpPort)) return true;
    }
    return false;
  }
}
