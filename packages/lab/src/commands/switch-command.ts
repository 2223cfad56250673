/** `rocev2 switch`: the software switch, live, until Ctrl-C. */

import {
  addFaultsOption,
  type CliIo,
  CommandFailure,
  defineDocument,
  durationOption,
  EXIT_USAGE,
  type Output,
  printing,
  textOption,
} from '@rocev2/command';
import type { Command } from 'commander';
import { NS_PER_S, parseCount, parseRateBps, parseSizeBytes, RoceError } from 'rocev2/internal/core';
import { formatUdpEndpoint } from 'rocev2/internal/dgram-ext';
import { nowNs } from 'rocev2/internal/driver';
import { serveDocument } from 'rocev2/internal/estats';
import { PRIORITIES } from 'rocev2/internal/packet';
import type { LiveSwitchPortCounters } from '../live/linked-switch.js';
import { type LiveSwitch, openLiveSwitch, parseSwitchPort } from '../live/live-switch.js';
import type { BufferPools } from '../switch/buffer-policy.js';
import type { RedConfig } from '../switch/switch-config.js';
import type { SwitchPortSnapshot } from '../switch/switch-snapshot.js';
import {
  EMPTY_SWITCH_FILE,
  liveSwitchOptions,
  type PortRate,
  readSwitchFile,
  type SwitchOverrides,
} from './switch-config-file.js';
import { printSwitchReport, type RuleHits, untilDone } from './switch-report.js';
import { switchDocument } from './switch-telemetry.js';

/** The fields of `switch --json`. */
interface SwitchResult {
  /** How long the switch ran. */
  readonly seconds: number;
  /** The ports, in the order of the command line. */
  readonly ports: readonly SwitchPortResult[];
  /** The shared buffer; missing without one. */
  readonly pools?: BufferPools | undefined;
  /** The fault rules, and how often each one applied. */
  readonly rules: readonly RuleHits[];
}

/** One port of a switch. */
interface SwitchPortResult extends SwitchPortSnapshot {
  /** Name of the port. */
  readonly name: string;
  /** `HOST:PORT` of its socket. */
  readonly local: string;
  /** Counters of the port; docs/switch.md explains them. */
  readonly counters: LiveSwitchPortCounters;
}

const SWITCH_DOCUMENT = defineDocument<SwitchResult>('switch');

interface SwitchCommandOptions extends SwitchOverrides {
  readonly config?: string;
  readonly duration?: number;
  readonly estats?: true;
}

/** Adds `rocev2 switch` to `program`. */
export function register(program: Command, io: CliIo): void {
  const command = program.command('switch');
  command
    .description(
      'Run an Ethernet switch whose ports are UDP sockets. Each datagram holds one frame, as with frame ports, QEMU -netdev ' +
        'dgram and GNS3. It runs until Ctrl-C, then prints its counters.',
    )
    .option(
      '--port <name=host:port[,host:port]>',
      'a port and its peer (default: the first sender on this host); give at least two',
      each(parseSwitchPort),
    )
    .option('--config <file>', 'JSON file with ports and all other settings (packages/lab/docs/switch.md)')
    .option('--rate <[name=]rate>', 'emulated link rate of a port, or of all: 1Gbps, b=100Mbps', each(parseRate))
    .option('--ecn <kmin,kmax,pmax>', 'ECN marking for DCQCN: 100KB,400KB,0.2', textOption(parseMarking))
    .option(
      '--pfc <priorities>',
      'lossless priorities, such as 3,4: pause senders, do not drop',
      textOption(parsePriorities),
    );
  addFaultsOption(command, 'fault rules between ports (docs/faults.md)', ['--loss'])
    .option(
      '--seed <n>',
      'seed for random fault rules and marks (default: 1)',
      textOption((text) => parseCount(text)),
    )
    .option('--duration <time>', 'stop after this time', durationOption)
    .option(
      '--estats',
      "publish ports and queues for 'rocev2 dashboard --attach' (packages/dashboard/docs/dashboard.md)",
    )
    .option('--json', 'print one JSON document at the end')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 switch --port a=127.0.0.1:5001 --port b=127.0.0.1:5002
  rocev2 switch --port a=127.0.0.1:5001,127.0.0.1:6001 --port b=127.0.0.1:5002,127.0.0.1:6002 --faults ip-id-lsb=0xff
  rocev2 switch --port a=127.0.0.1:5001 --port b=127.0.0.1:5002 --rate 1Gbps --ecn 100KB,400KB,0.2`,
    )
    .action(printing(io, runSwitch));
}

function each<T>(parse: (text: string) => T): (text: string, previous?: readonly T[]) => T[] {
  const parseOne = textOption(parse);
  return (text, previous = []) => [...previous, parseOne(text)];
}

function parseRate(text: string): PortRate {
  const [, port, rate] = /^(?:([^=]+)=)?(.*)$/.exec(text)!;
  const rateBps = parseRateBps(rate);
  if (rateBps > 0) return { port, rateBps };
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', 'a link rate must be above 0');
}

function parseMarking(text: string): RedConfig {
  const [kmin, kmax, pmax, ...rest] = text.split(',');
  const probability = Number(pmax);
  if (pmax === undefined || pmax.trim() === '' || rest.length > 0 || !(probability >= 0 && probability <= 1)) {
    throw new RoceError(
      'ERR_ROCE_MALFORMED',
      `'${text}' is not an ECN marking`,
      'write KMIN,KMAX,PMAX such as 100KB,400KB,0.2; PMAX is 0 to 1',
    );
  }
  return { kind: 'red', kminBytes: parseSizeBytes(kmin), kmaxBytes: parseSizeBytes(kmax), pmax: probability };
}

function parsePriorities(text: string): number[] {
  return text.split(',').map((priority) => parseCount(priority, 0, PRIORITIES - 1));
}

async function runSwitch(options: SwitchCommandOptions, output: Output): Promise<void> {
  const file = options.config === undefined ? EMPTY_SWITCH_FILE : await readSwitchFile(options.config);
  const { options: liveOptions, faults } = liveSwitchOptions(file, options);
  if (liveOptions.ports.length < 2) {
    throw new CommandFailure(
      EXIT_USAGE,
      'a switch needs at least two ports: --port a=127.0.0.1:5001 --port b=127.0.0.1:5002, or --config FILE',
    );
  }
  const live = await openLiveSwitch(liveOptions);
  const startNs = nowNs();
  const names = liveOptions.ports.map(({ name }) => name);
  for (const name of names) output.note(`switch port ${name} on ${formatUdpEndpoint(live.local(name))}`);
  if (options.duration === undefined) output.ready();
  const uptimeSeconds = () => (nowNs() - startNs) / NS_PER_S;
  const { portConfig, portDefaults } = liveOptions;
  const telemetryPorts = names.map((name) => ({
    name,
    local: formatUdpEndpoint(live.local(name)),
    rateBps: portConfig?.[name]?.rateBps ?? portDefaults?.rateBps ?? null,
  }));
  const address = [...new Set(liveOptions.ports.map(({ local }) => local.host.text))].join(',');
  const document = () => switchDocument(live, { address, ports: telemetryPorts, faults }, uptimeSeconds());
  const telemetry = options.estats === true ? await serveDocument(document).catch(closing(live)) : undefined;
  await untilDone(options.duration, output, live);
  await telemetry?.close();
  const seconds = uptimeSeconds();
  const { counters } = live;
  const snapshot = live.snapshot();
  await live.close();
  printSwitchReport(output, { names, counters, snapshot, rules: faults?.hits ?? [] });
  output.document(SWITCH_DOCUMENT, {
    seconds,
    ports: names.map((name) => ({
      name,
      local: formatUdpEndpoint(live.local(name)),
      counters: counters[name],
      ...snapshot.ports[name],
    })),
    pools: snapshot.pools,
    rules: faults?.hits ?? [],
  });
}

function closing(live: LiveSwitch): (error: Error) => Promise<never> {
  return async (error) => {
    await live.close();
    throw error;
  };
}
