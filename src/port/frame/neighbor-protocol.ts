/**
 * ARP (RFC 826) and IPv6 neighbour discovery (RFC 4861 §7.2) for one station with one address: queries, answers, cache.
 * Sans-IO: frames go out through a callback, time is passed in.
 */

import { equalBytes } from '../../core/bytes.js';
import { IpAddress } from '../../packet/address.js';
import { ARP_BYTES, ARP_REPLY, ARP_REQUEST, ArpPacket, parseArp, writeArp } from '../../packet/arp.js';
import {
  BROADCAST_MAC,
  ETHERNET_BYTES,
  ETHERTYPE_ARP,
  ETHERTYPE_IPV6,
  MAC_BYTES,
  writeEthernet,
} from '../../packet/ethernet.js';
import {
  ALL_NODES,
  multicastMac,
  NDP_BYTES,
  NdpPacket,
  NEIGHBOR_ADVERTISEMENT,
  parseNdp,
  solicitedNodeAddress,
  writeNeighborAdvertisement,
  writeNeighborSolicitation,
} from '../../packet/ndp.js';
import { NeighborCache } from './neighbor-cache.js';

const UNKNOWN_MAC = new Uint8Array(MAC_BYTES);

/** Times are nanoseconds of one monotonic clock. */
export class NeighborProtocol {
  readonly #address: IpAddress;
  readonly #mac: Uint8Array;
  readonly #send: (frame: Uint8Array) => void;
  readonly #cache = new NeighborCache();
  readonly #arp = new ArpPacket();
  readonly #ndp = new NdpPacket();

  constructor(address: IpAddress, mac: Uint8Array, send: (frame: Uint8Array) => void) {
    this.#address = address;
    this.#mac = mac;
    this.#send = send;
  }

  addStatic(address: IpAddress, mac: Uint8Array): void {
    this.#cache.add(address, Uint8Array.from(mac), Infinity);
  }

  lookup(address: IpAddress, nowNs: number): Uint8Array | undefined {
    if (this.#cache.shouldAsk(address, nowNs)) this.#ask(address);
    return this.#cache.lookup(address, nowNs);
  }

  /**
   * Announces our port to the switch, and the move of this address to stations that had it elsewhere: a request for our
   * own address (RFC 5227 §2.3), or an unsolicited advertisement (RFC 4861 §7.2.6).
   */
  announce(): void {
    if (this.#address.family === 4) this.#ask(this.#address);
    else this.#advertise(ALL_NODES, multicastMac(ALL_NODES));
  }

  receiveArp(bytes: Uint8Array, offset: number, nowNs: number): boolean {
    const arp = this.#arp;
    if (this.#address.family !== 4 || !parseArp(bytes, offset, bytes.length - offset, arp)) return false;
    const asksForUs = arp.operation === ARP_REQUEST && equalBytes(arp.targetIp, this.#address.bytes);
    this.#learn(arp.senderIp, arp.senderMac, asksForUs, nowNs);
    if (!asksForUs) return true;
    const reply = new Uint8Array(ETHERNET_BYTES + ARP_BYTES);
    const o = writeEthernet(reply, 0, arp.senderMac, this.#mac, ETHERTYPE_ARP);
    writeArp(reply, o, ARP_REPLY, this.#mac, this.#address.bytes, arp.senderMac, arp.senderIp);
    this.#send(reply);
    return true;
  }

  receiveNdp(bytes: Uint8Array, offset: number, nowNs: number): boolean {
    const ndp = this.#ndp;
    if (this.#address.family !== 6 || !parseNdp(bytes, offset, bytes.length - offset, ndp)) return false;
    if (!ndp.hasMac) return true;
    if (ndp.type === NEIGHBOR_ADVERTISEMENT) {
      this.#learn(ndp.targetIp, ndp.mac, false, nowNs);
      return true;
    }
    if (!equalBytes(ndp.targetIp, this.#address.bytes)) return true;
    this.#learn(ndp.sourceIp, ndp.mac, true, nowNs);
    this.#advertise(ndp.sourceIp, ndp.mac);
    return true;
  }

  /** A station that queries us is about to send to us; others are learnt only if we queried them. */
  #learn(ip: Uint8Array, mac: Uint8Array, asksForUs: boolean, nowNs: number): void {
    const address = IpAddress.fromBytes(ip);
    if (address.equals(this.#address)) return;
    if (asksForUs) this.#cache.add(address, mac.slice(), nowNs);
    else this.#cache.answer(address, mac.slice(), nowNs);
  }

  #advertise(toIp: Uint8Array, toMac: Uint8Array): void {
    const advertisement = new Uint8Array(ETHERNET_BYTES + NDP_BYTES);
    const o = writeEthernet(advertisement, 0, toMac, this.#mac, ETHERTYPE_IPV6);
    writeNeighborAdvertisement(advertisement, o, this.#address.bytes, this.#mac, toIp);
    this.#send(advertisement);
  }

  #ask(target: IpAddress): void {
    if (target.family !== this.#address.family) return;
    if (target.family === 4) {
      const request = new Uint8Array(ETHERNET_BYTES + ARP_BYTES);
      const o = writeEthernet(request, 0, BROADCAST_MAC, this.#mac, ETHERTYPE_ARP);
      writeArp(request, o, ARP_REQUEST, this.#mac, this.#address.bytes, UNKNOWN_MAC, target.bytes);
      this.#send(request);
      return;
    }
    const solicitation = new Uint8Array(ETHERNET_BYTES + NDP_BYTES);
    const group = multicastMac(solicitedNodeAddress(target.bytes));
    const o = writeEthernet(solicitation, 0, group, this.#mac, ETHERTYPE_IPV6);
    writeNeighborSolicitation(solicitation, o, this.#address.bytes, this.#mac, target.bytes);
    this.#send(solicitation);
  }
}
