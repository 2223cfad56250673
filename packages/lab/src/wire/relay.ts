/**
 * A relay of RoCEv2 datagrams: packets get the relay's address, an ICRC that is right for it (a wrong one stays wrong),
 * and in RDMA CM requests the addresses of the other side. One peer is known, the other is the first other address that
 * sends.
 */

import { readU16, writeU16 } from 'rocev2/internal/core';
import {
  BTH_BYTES,
  checkIcrc,
  DETH_BYTES,
  ETHERNET_BYTES,
  ETHERTYPE_IPV4,
  ETHERTYPE_IPV6,
  FRAME_OK,
  FrameInfo,
  ICRC_BAD,
  ICRC_BYTES,
  ICRC_OK_ID_SOLVED,
  IcrcFlows,
  IP_PROTOCOL_UDP,
  IPV6_BYTES,
  type IpAddress,
  parseFrame,
  parseMac,
  refreshIpv4Checksum,
  renumberIcrc,
  sealIcrc,
  UD_SEND_ONLY,
  UDP_BYTES,
  writeEthernet,
  writeIpv4,
  writeIpv6,
  writeUdp,
} from 'rocev2/internal/packet';
import {
  IP_ID_UNKNOWN,
  type Port,
  ROCE_UDP_PORT,
  type RxDatagram,
  TX_PAYLOAD_BYTES_MAX,
  type TxBatch,
} from 'rocev2/internal/port';
import type { FrameHandler, FrameLink } from '../live/frame-link.js';

const HOP_LIMIT = 64;
const FRAME_BYTES_MAX = ETHERNET_BYTES + IPV6_BYTES + 0xffff;
const GSI_QPN = 1;
const MAD_HEADER_BYTES = 24;
const CLASS_CM = 0x07;
const CM_REQ = 0x10;
const CM_SIDR_REQ = 0x17;
/**
 * 16-byte fields of a REQ with the addresses of sender and receiver: GIDs, and the IP addressing header of the private
 * data (IBTA A11, §12.6.5).
 */
const REQ_ADDRESSES: ReadonlyArray<readonly [number, number]> = [
  [56, 72],
  [144, 160],
];
/** The same of a SIDR_REQ: the header alone. */
const SIDR_REQ_ADDRESSES: ReadonlyArray<readonly [number, number]> = [[20, 36]];

const MACS = { client: parseMac('02:00:00:00:00:01'), host: parseMac('02:00:00:00:00:02') } as const;

class RelaySide implements FrameLink {
  readonly description: string;
  errors = 0;
  onFrame: FrameHandler = () => {};
  onFrames: () => void = () => {};
  peer: IpAddress | undefined;
  peerPort = ROCE_UDP_PORT;
  readonly #relay: Relay;

  constructor(relay: Relay, description: string) {
    this.#relay = relay;
    this.description = description;
  }

  get unknownPeers(): number {
    return this.#relay.unknownPeers;
  }

  readonly address: FrameHandler = (bytes, offset, length) => this.#relay.readdress(this, bytes, offset, length);

  send(frame: Uint8Array): void {
    this.#relay.send(this, frame);
  }

  flush(): boolean {
    this.#relay.flush();
    return true;
  }

  close(): Promise<void> {
    return this.#relay.close();
  }
}

export class Relay {
  readonly client: RelaySide;
  readonly host: RelaySide;
  unknownPeers = 0;
  readonly #port: Port;
  readonly #frame = new Uint8Array(FRAME_BYTES_MAX);
  readonly #info = new FrameInfo();
  readonly #flows = new IcrcFlows();
  #batch: TxBatch | undefined;
  #closing: Promise<void> | undefined;
  #isPending = false;

  constructor(port: Port, host: IpAddress) {
    this.#port = port;
    this.client = new RelaySide(this, port.address.text);
    this.host = new RelaySide(this, host.text);
    this.host.peer = host;
    port.onDatagram = (datagram) => this.#receive(datagram);
  }

  close(): Promise<void> {
    this.#closing ??= this.#port.close();
    return this.#closing;
  }

  #receive(datagram: RxDatagram): void {
    const side = this.#sideOf(datagram.source);
    if (side === undefined || this.#closing !== undefined) {
      this.unknownPeers++;
      return;
    }
    // The socket does not show the identification: it is recovered from the ICRC.
    const { bytes, offset, length } = datagram;
    let { ipId } = datagram;
    if (ipId < 0) {
      const flow = this.#flows.of(datagram.source, datagram.destination, datagram.sourcePort, datagram.destinationPort);
      const verdict = checkIcrc(flow, bytes, offset, length, ipId);
      ipId = verdict === ICRC_OK_ID_SOLVED ? flow.solvedId : IP_ID_UNKNOWN - ipId;
    }
    side.onFrame(this.#frame, 0, this.#write(side, datagram, ipId));
    if (this.#isPending) return;
    this.#isPending = true;
    setImmediate(this.#onReceived);
  }

  readonly #onReceived = (): void => {
    this.#isPending = false;
    this.client.onFrames();
  };

  #sideOf(source: IpAddress): RelaySide | undefined {
    if (this.host.peer!.equals(source)) return this.host;
    this.client.peer ??= source;
    return this.client.peer.equals(source) ? this.client : undefined;
  }

  #write(side: RelaySide, datagram: RxDatagram, ipId: number): number {
    const { source, destination, sourcePort, destinationPort, bytes, offset, length, dscp, ecn } = datagram;
    const [from, to] = side === this.client ? [MACS.client, MACS.host] : [MACS.host, MACS.client];
    const frame = this.#frame;
    const isV4 = source.family === 4;
    const trafficClass = (dscp << 2) | ecn;
    let end = writeEthernet(frame, 0, to, from, isV4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
    const ips = [source.bytes, destination.bytes] as const;
    end = isV4
      ? writeIpv4(frame, end, ...ips, IP_PROTOCOL_UDP, trafficClass, HOP_LIMIT, ipId, UDP_BYTES + length)
      : writeIpv6(frame, end, ...ips, IP_PROTOCOL_UDP, trafficClass, 0, HOP_LIMIT, UDP_BYTES + length);
    end = writeUdp(frame, end, sourcePort, destinationPort, length);
    frame.set(bytes.subarray(offset, offset + length), end);
    return end + length;
  }

  readdress(side: RelaySide, bytes: Uint8Array, offset: number, length: number): void {
    const info = this.#info;
    const { peer } = side;
    if (peer === undefined || parseFrame(bytes, offset, length, info) !== FRAME_OK) return;
    const { sourceOffset, destinationOffset, addressBytes, udpOffset, payloadOffset, payloadBytes } = info;
    const own = this.#port.address;
    const sourcePort = this.#port.fixedSourcePort ?? ROCE_UDP_PORT;
    const other = side === this.host ? this.client.peer : this.host.peer;
    const isBad =
      other !== undefined &&
      checkIcrc(
        this.#flows.of(other, own, info.sourcePort, info.destinationPort),
        bytes,
        payloadOffset,
        payloadBytes,
        info.ipId,
      ) === ICRC_BAD;
    bytes.set(own.bytes, sourceOffset);
    bytes.set(peer.bytes, destinationOffset);
    writeU16(bytes, udpOffset, sourcePort);
    writeU16(bytes, udpOffset + 2, side.peerPort);
    if (addressBytes === own.bytes.length && own.family === 4) {
      writeU16(bytes, info.ipOffset + 4, 0);
      refreshIpv4Checksum(bytes, info.ipOffset);
    }
    if (payloadBytes < BTH_BYTES + ICRC_BYTES) return;
    if (!isBad) readdressRequest(bytes, payloadOffset, payloadBytes, own, peer);
    sealIcrc(this.#flows.of(own, peer, sourcePort, side.peerPort), bytes, payloadOffset, payloadBytes, 0, undefined);
    if (isBad) bytes[payloadOffset + payloadBytes - 1] ^= 0xff;
  }

  send(side: RelaySide, frame: Uint8Array): void {
    const info = this.#info;
    const { peer } = side;
    const isSendable =
      parseFrame(frame, 0, frame.length, info) === FRAME_OK && info.payloadBytes <= TX_PAYLOAD_BYTES_MAX;
    if (peer === undefined || !isSendable) {
      side.errors++;
      return;
    }
    if (this.#batch !== undefined && this.#batch.count === this.#batch.capacity) this.flush();
    this.#batch ??= this.#port.beginBatch();
    const batch = this.#batch;
    if (batch === undefined) {
      side.errors++;
      return;
    }
    const slot = batch.count++;
    const at = batch.payloadOffset(slot);
    batch.slab.set(frame.subarray(info.payloadOffset, info.payloadOffset + info.payloadBytes), at);
    batch.lengths[slot] = info.payloadBytes;
    batch.ipIds[slot] = 0;
    batch.ecns[slot] = info.ecn;
    batch.dscps[slot] = info.dscp;
    batch.sourcePorts[slot] = readU16(frame, info.udpOffset);
    batch.destinationPorts[slot] = side.peerPort;
    batch.sources[slot] = this.#port.address;
    batch.destinations[slot] = peer;
    if (this.#port.ipIdPolicy !== 'train' || peer.family !== 4) return;
    const id = batch.trainIndex(slot);
    if (id !== 0 && info.payloadBytes >= BTH_BYTES + ICRC_BYTES) renumberIcrc(batch.slab, at, info.payloadBytes, 0, id);
    batch.ipIds[slot] = id;
  }

  flush(): void {
    if (this.#batch !== undefined && this.#closing === undefined) this.#port.sendBatch(this.#batch);
    this.#batch = undefined;
  }
}

/** A REQ or SIDR_REQ names the addresses of both ends in its data. */
function readdressRequest(bytes: Uint8Array, bth: number, length: number, from: IpAddress, to: IpAddress): void {
  const mad = bth + BTH_BYTES + DETH_BYTES;
  if (bytes[bth] !== UD_SEND_ONLY || bytes[bth + 7] !== GSI_QPN || readU16(bytes, bth + 5) !== 0) return;
  if (length < mad - bth + 256 || bytes[mad + 1] !== CLASS_CM) return;
  const attribute = readU16(bytes, mad + 16);
  const offsets = attribute === CM_REQ ? REQ_ADDRESSES : attribute === CM_SIDR_REQ ? SIDR_REQ_ADDRESSES : [];
  for (const [source, destination] of offsets) {
    writeAddress(bytes, mad + MAD_HEADER_BYTES + source, from);
    writeAddress(bytes, mad + MAD_HEADER_BYTES + destination, to);
  }
}

function writeAddress(bytes: Uint8Array, at: number, address: IpAddress): void {
  bytes.set(address.bytes, at + 16 - address.bytes.length);
}
