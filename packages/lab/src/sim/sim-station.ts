/**
 * A host on an Ethernet cable: the real NIC on virtual time, with the headers of every layer around its packets, so that switches see what
 * they would see on a wire. MAC addresses follow from the IPv4 address; nobody has to ask for them.
 */

import { type RandomSource, readU24 } from 'rocev2/internal/core';
import {
  FRAME_OK,
  FrameInfo,
  IpAddress,
  PFC_FRAME_BYTES,
  PFC_QUANTA_MAX,
  PfcFrame,
  PRIORITIES,
  parseFrame,
  parsePfc,
  pauseNs,
  writePfc,
} from 'rocev2/internal/packet';
import {
  frameHeaderBytes,
  newRxDatagram,
  type RxDatagram,
  readFrame,
  SourceCache,
  type TxBatch,
  writeFrameHeaders,
} from 'rocev2/internal/port';
import type { FrameStorage } from '../switch/frame-pool.js';
import type { Cable, FrameSink } from './cable.js';
import type { EventQueue } from './event-queue.js';
import { ReceivePipeline, type ReceivePipelineOptions } from './receive-pipeline.js';
import { SimHost } from './sim-host.js';
import { VirtualPayload } from './virtual-payload.js';

/** Sees the UDP payload of every packet that a station sends or takes in; valid during the call. {@link SimStation.peer} is its other host. */
type PacketProbe = (isSent: boolean, bytes: Uint8Array, offset: number, length: number, ecn: number) => void;

/** Stands between a station's NIC and its cable, and may look at both. */
export interface StationTap {
  /** A datagram leaves, in slot 0. */
  sent(batch: TxBatch): void;
  /** A datagram has arrived; `takeIn` gives it to the NIC, and is called once. */
  received(datagram: RxDatagram, takeIn: () => void): void;
}

interface SimStationOptions {
  /** 0..65535; makes the addresses. */
  readonly index: number;
  readonly events: EventQueue;
  readonly random: RandomSource;
  /** Takes what the station sends. */
  readonly cable: Cable;
  readonly pathMtuMax: number;
  /** Default: packets are taken in as they arrive. */
  readonly pipeline?: ReceivePipelineOptions | undefined;
  /** The largest frame, without check sequence. */
  readonly frameBytesMax: number;
  /** Default: true; see {@link VirtualPayload}. */
  readonly carriesPayload?: boolean;
  /** How its pipeline keeps frames. */
  readonly storage?: FrameStorage | undefined;
}

/** In the BTH. */
const DEST_QP_OFFSET = 5;

/** A host with Ethernet framing, pauses, and perhaps a receive pipeline. */
export class SimStation {
  /** Its NIC. */
  readonly host: SimHost;
  /** Its MAC address, 6 bytes. */
  readonly mac: Uint8Array;
  /** Called with every RoCE packet sent and taken in, as `bytes` from `offset` on, BTH first. */
  onPacket: PacketProbe | undefined;
  /** Who the packet that was sent or taken in last goes to, or comes from; its own address before the first. */
  peer: IpAddress;
  /** Called with every frame that leaves or arrives, from the Ethernet header on, without check sequence; valid during the call. */
  onFrame: FrameSink | undefined;
  /** Sees every datagram that leaves, and that the NIC takes in. */
  tap: StationTap | undefined;
  readonly #events: EventQueue;
  readonly #cable: Cable;
  readonly #headerBytes: number;
  readonly #frame = new FrameInfo();
  readonly #pfc = new PfcFrame();
  readonly #rx: RxDatagram;
  readonly #sources = new SourceCache();
  readonly #destinationMac = macOf(IpAddress.parse('0.0.0.0'));
  readonly #pipeline: ReceivePipeline | undefined;
  readonly #virtual: VirtualPayload | undefined;

  constructor(options: SimStationOptions) {
    const {
      index,
      events,
      random,
      cable,
      pathMtuMax,
      pipeline,
      frameBytesMax,
      carriesPayload = true,
      storage,
    } = options;
    const address = IpAddress.fromBytes(Uint8Array.of(10, 0, index >> 8, index & 0xff));
    this.host = new SimHost({ address, events, random, pathMtuMax, carriesPayload });
    if (!carriesPayload) this.#virtual = new VirtualPayload(frameBytesMax);
    this.mac = macOf(address);
    this.peer = address;
    this.#events = events;
    this.#cable = cable;
    this.#headerBytes = frameHeaderBytes(4);
    this.#rx = newRxDatagram(address);
    this.host.connect((batch) => this.#send(batch));
    const pause = (priority: number, isOn: boolean) => this.#ask(priority, isOn ? PFC_QUANTA_MAX : 0);
    this.#pipeline =
      pipeline && new ReceivePipeline(pipeline, { events, frameBytesMax, storage, take: this.#take, pause });
  }

  /** Packets that its pipeline had no room for. */
  get lostPackets(): number {
    return this.#pipeline?.lostPackets ?? 0;
  }

  /** Its IPv4 address, 10.0.x.x. */
  get address(): IpAddress {
    return this.host.address;
  }

  /** Takes a frame off the cable: a packet for the NIC or a pause frame; all else is dropped. */
  readonly receive = (bytes: Uint8Array, offset: number, length: number): void => {
    const frame = this.#frame;
    this.onFrame?.(bytes, offset, length);
    if (parseFrame(bytes, offset, length, frame) !== FRAME_OK) {
      if (parsePfc(bytes, offset, length, this.#pfc)) this.#pausePriorities(this.#pfc);
    } else if (this.#pipeline === undefined) this.#handOver(bytes, offset, length);
    else this.#pipeline.add(readU24(bytes, frame.payloadOffset + DEST_QP_OFFSET), bytes, offset, length);
  };

  /** A broken station: asks its switch for the longest pause of a priority, again and again until `untilNs`. */
  storm(priority: number, untilNs: number): void {
    const repeat = (): void => {
      if (this.#events.nowNs < untilNs) this.#events.after(this.#ask(priority, PFC_QUANTA_MAX) / 2, repeat);
    };
    repeat();
  }

  /** Asks the switch to pause a priority for so many quanta; how long that is. */
  #ask(priority: number, quanta: number): number {
    const pause = new PfcFrame();
    pause.enabled = 1 << priority;
    pause.quanta[priority] = quanta;
    const bytes = new Uint8Array(PFC_FRAME_BYTES);
    writePfc(bytes, 0, this.mac, pause);
    this.onFrame?.(bytes, 0, bytes.length);
    this.#cable.send(bytes, 0, bytes.length);
    return pauseNs(quanta, this.#cable.rateBps);
  }

  /** From the pipeline. */
  readonly #take: FrameSink = (bytes, offset, length) => {
    parseFrame(bytes, offset, length, this.#frame);
    this.#handOver(bytes, offset, length);
  };

  /** `#frame` describes what stands in `bytes`. */
  #handOver(bytes: Uint8Array, offset: number, length: number): void {
    const rx = this.#rx;
    const frame = this.#frame;
    readFrame(rx, bytes, frame, this.#sources.get(bytes, frame.sourceOffset, frame.addressBytes));
    if (this.#virtual !== undefined) {
      rx.bytes = this.#virtual.read(bytes, offset, length);
      rx.offset -= offset;
    }
    this.peer = rx.source;
    this.onPacket?.(false, rx.bytes, rx.offset, rx.length, rx.ecn);
    if (this.tap === undefined) this.host.receive(rx);
    else this.tap.received(rx, this.#takeIn);
  }

  readonly #takeIn = (): void => this.host.receive(this.#rx);

  #pausePriorities({ enabled, quanta }: PfcFrame): void {
    for (let priority = 0; priority < PRIORITIES; priority++) {
      if ((enabled & (1 << priority)) === 0) continue;
      this.host.pause(priority, pauseNs(quanta[priority], this.#cable.rateBps));
    }
  }

  #send(batch: TxBatch): number {
    const start = batch.payloadOffset(0);
    const length = batch.lengths[0];
    this.#destinationMac.set(batch.destinations[0].bytes, 2);
    writeFrameHeaders(batch, 0, this.mac, this.#destinationMac);
    this.peer = batch.destinations[0];
    this.onPacket?.(true, batch.slab, start, length, batch.ecns[0]);
    const [first, frameBytes] = [start - this.#headerBytes, length + this.#headerBytes];
    this.onFrame?.(batch.slab, first, frameBytes);
    this.tap?.sent(batch);
    return this.#cable.send(batch.slab, first, frameBytes);
  }
}

/** A locally administered address that ends in the four bytes of the IP address. */
function macOf(address: IpAddress): Uint8Array {
  return Uint8Array.of(2, 0, ...address.bytes);
}
