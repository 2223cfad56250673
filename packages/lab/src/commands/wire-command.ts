/** `rocev2 wire`: in the path between two peers, until Ctrl-C. */

import {
  addressOption,
  type CliIo,
  CommandFailure,
  defineDocument,
  durationOption,
  EXIT_USAGE,
  Output,
  textOption,
} from '@rocev2/command';
import type { AuditReport } from '@rocev2/inspect';
import { printReport } from '@rocev2/inspect/internal';
import type { Command } from 'commander';
import { LINKTYPE_ETHERNET, PcapngFile } from 'rocev2/internal/capture';
import { NS_PER_S, parseCount, parseRateBps, RoceError, SeededRandom } from 'rocev2/internal/core';
import { nowNs, wallClockNs } from 'rocev2/internal/driver';
import { serveDocument } from 'rocev2/internal/estats';
import { FaultPlan, parseFaultRules } from 'rocev2/internal/faults';
import type { IpAddress } from 'rocev2/internal/packet';
import type { LiveSwitchPortCounters } from '../live/linked-switch.js';
import type { SwitchPortSnapshot } from '../switch/switch-snapshot.js';
import { Observer } from '../wire/observer.js';
import { openWire, parseWireEnd, SIDES, type Wire, type WireEnd, type WirePlace } from '../wire/wire.js';
import { printSwitchReport, type RuleHits, untilDone } from './switch-report.js';
import { switchDocument } from './switch-telemetry.js';
import { LiveLines } from './wire/live-lines.js';

/** The fields of `wire --json`. */
export interface WireResult {
  /** How long the wire was there. */
  readonly seconds: number;
  /** Sides a and b. */
  readonly sides: readonly WireSideResult[];
  /** The fault rules, and how often each one applied. */
  readonly rules: readonly RuleHits[];
  /** With --pcap: the file, and frames of which the disk was too slow. */
  readonly capture?: { readonly file: string; readonly dropped: number } | undefined;
  /** With --audit: what was found. Numbers of packets are those of the capture. */
  readonly audit?: AuditReport | undefined;
}

/** One side of a wire. */
interface WireSideResult extends SwitchPortSnapshot {
  /** `a` or `b`. */
  readonly name: string;
  /** Name of the interface, `HOST:PORT` of the socket, or address of the peer. */
  readonly link: string;
  /** Counters of the side; docs/switch.md explains them. */
  readonly counters: LiveSwitchPortCounters;
}

const WIRE_DOCUMENT = defineDocument<WireResult>('wire');

const BUFFER_PACKETS = 8192;
const QUEUE_PACKETS = 4096;

interface WireCommandOptions {
  readonly relay?: IpAddress;
  readonly to?: IpAddress;
  readonly faults?: string;
  readonly seed?: number;
  readonly rate?: number;
  readonly pcap?: string;
  readonly audit?: true;
  readonly estats?: true;
  readonly duration?: number;
  readonly json?: true;
}

/** Adds `rocev2 wire` to `program`. */
export function register(program: Command, io: CliIo): void {
  program
    .command('wire')
    .description(
      'Forward packets between two unmodified peers: two network interfaces, two links of UDP datagrams (QEMU ' +
        '-netdev dgram, GNS3, frame ports), or a relay. It runs until Ctrl-C, then prints its counters.',
    )
    .argument('[a]', 'side a: a network interface, or HOST:PORT[,REMOTEHOST:REMOTEPORT]', textOption(parseWireEnd))
    .argument('[b]', 'side b', textOption(parseWireEnd))
    .option('--relay <address>', 'an address of this host at which the peer of --to appears', addressOption)
    .option('--to <address>', 'the peer behind the relay', addressOption)
    .option(
      '--faults <rules>',
      'fault rules; directions are a>b and b>a (docs/faults.md)',
      textOption((text) => {
        parseFaultRules(text);
        return text;
      }),
    )
    .option(
      '--seed <n>',
      'seed for random fault rules (default: 1)',
      textOption((text) => parseCount(text)),
    )
    .option('--rate <rate>', 'emulated link rate of both sides, such as 1Gbps', textOption(parseLinkRate))
    .option('--pcap <file>', 'write all frames of both sides to a pcapng file')
    .option('--audit', 'check passing packets, and print broken rules immediately')
    .option('--duration <time>', 'stop after this time', durationOption)
    .option('--estats', "publish both sides for 'rocev2 dashboard --attach' (packages/dashboard/docs/dashboard.md)")
    .option('--json', 'print one JSON document at the end')
    .addHelpText(
      'after',
      `
Interfaces need root (or CAP_NET_RAW) and should have no IP address.
Fault rules match RoCEv2 packets only. packages/lab/docs/wire.md shows the three
kinds of connection.

Examples:
  rocev2 wire veth-a veth-b --faults 'every=256' --audit
  rocev2 wire 127.0.0.1:5001 127.0.0.1:5002 --pcap both-sides.pcapng
  rocev2 wire --relay 127.0.0.2 --to 127.0.0.3 --faults 'rpsn=16,delay=2ms:once'`,
    )
    .action((a: WireEnd | undefined, b: WireEnd | undefined, options: WireCommandOptions) =>
      runWire(attachmentOf(a, b, options), options, new Output(io, options.json === true)),
    );
}

function parseLinkRate(text: string): number {
  const rateBps = parseRateBps(text);
  if (rateBps > 0) return rateBps;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', 'a link rate must be above 0');
}

function attachmentOf(a: WireEnd | undefined, b: WireEnd | undefined, { relay, to }: WireCommandOptions): WirePlace {
  if (a !== undefined && b !== undefined && relay === undefined && to === undefined) return { ends: [a, b] };
  if (a === undefined && relay !== undefined && to !== undefined) return { relay, to };
  throw new CommandFailure(
    EXIT_USAGE,
    "name two ends ('rocev2 wire veth-a veth-b'), or an address and a peer ('rocev2 wire --relay 127.0.0.2 --to 127.0.0.3')",
  );
}

async function runWire(place: WirePlace, options: WireCommandOptions, output: Output): Promise<void> {
  const random = new SeededRandom(options.seed ?? 1);
  const faults = options.faults === undefined ? undefined : FaultPlan.parse(options.faults, random, SIDES);
  const lines = new LiveLines(output);
  const capture = options.pcap === undefined ? undefined : await createCapture(options.pcap);
  const observer =
    capture === undefined && options.audit === undefined
      ? undefined
      : new Observer({ capture, onObservation: options.audit && lines.observe, wallClockNs: wallClockNs() });
  let wire: Wire;
  try {
    wire = await openWire(place, {
      ...(faults !== undefined && { faults }),
      ...(options.audit !== undefined && { onFault: lines.fault }),
      ...(observer !== undefined && { tap: (...frame) => observer.take(...frame) }),
      ...(options.rate !== undefined && { portDefaults: { rateBps: options.rate } }),
      bufferPackets: BUFFER_PACKETS,
      queuePackets: QUEUE_PACKETS,
    });
  } catch (error) {
    await capture?.close();
    throw error;
  }
  const startNs = nowNs();
  const seconds = () => (nowNs() - startNs) / NS_PER_S;
  const { descriptions } = wire;
  output.note(`a wire: side a on ${descriptions[0]}, side b on ${descriptions[1]}`);
  if (options.duration === undefined) output.ready();
  const telemetry = options.estats === true ? await serve(wire, faults, options, seconds) : undefined;
  await untilDone(options.duration, output, wire.switch);
  lines.end();
  await telemetry?.close();
  const took = seconds();
  const { counters } = wire.switch;
  const snapshot = wire.switch.snapshot();
  await wire.close();
  await capture?.close();
  const rules = faults?.hits ?? [];
  printSwitchReport(output, { names: SIDES, counters, snapshot, rules });
  const audit = observer?.report();
  if (audit !== undefined) {
    output.line();
    printReport(output, audit);
  }
  if (capture !== undefined) {
    const dropped = capture.dropped > 0 ? `, without ${capture.dropped} for which the disk was too slow` : '';
    output.line(`${options.pcap} has the frames of both sides${dropped}.`);
  }
  output.document(WIRE_DOCUMENT, {
    seconds: took,
    sides: SIDES.map((name, side) => ({
      name,
      link: descriptions[side],
      counters: counters[name],
      ...snapshot.ports[name],
    })),
    rules,
    ...(capture !== undefined && { capture: { file: options.pcap!, dropped: capture.dropped } }),
    ...(audit !== undefined && { audit }),
  });
}

function createCapture(path: string): Promise<PcapngFile> {
  return PcapngFile.create(
    path,
    SIDES.map((name) => ({ name: `side ${name}`, linkType: LINKTYPE_ETHERNET })),
  );
}

async function serve(
  wire: Wire,
  faults: FaultPlan | undefined,
  { rate = null }: Omit<WireCommandOptions, 'rate'> & { readonly rate?: number | null },
  seconds: () => number,
) {
  const ports = SIDES.map((name, side) => ({ name, local: wire.descriptions[side], rateBps: rate }));
  const address = wire.descriptions.join(',');
  try {
    return await serveDocument(() => switchDocument(wire.switch, { address, ports, faults }, seconds()));
  } catch (error) {
    await wire.close();
    throw error;
  }
}
