/** `rocev2 switch`: the software switch, live, until Ctrl-C. */

import { type Command, InvalidArgumentError } from 'commander';
import { RoceError } from '../../core/errors.js';
import { SeededRandom } from '../../core/random.js';
import { formatRate, parseCount } from '../../core/units.js';
import type { UdpEndpoint } from '../../dgram-ext/udp-endpoint.js';
import { type LiveSwitch, type LiveSwitchPort, openLiveSwitch, parseSwitchPort } from '../../driver/live-switch.js';
import { FaultPlan } from '../../faults/fault-plan.js';
import { LiveLine } from '../live-line.js';
import { durationOption } from '../options.js';
import { type CliIo, type Column, Output } from '../output.js';
import { EMPTY_SWITCH_CONFIG, readSwitchConfig } from '../switch-config.js';

const DISPLAY_INTERVAL_MS = 1000;
const NS_PER_MS = 1e6;
/** setTimeout counts in 32 bits of milliseconds. */
const TIMEOUT_MS_MAX = 0x7fffffff;

interface SwitchCommandOptions {
  readonly port?: readonly LiveSwitchPort[];
  readonly config?: string;
  readonly loss?: string;
  readonly seed?: number;
  readonly duration?: number;
  readonly json?: true;
}

export function register(program: Command, io: CliIo): void {
  program
    .command('switch')
    .description(
      'A learning Ethernet switch whose ports are UDP sockets: one frame a datagram, as frame ports, QEMU -netdev dgram ' +
        'and GNS3 send them. It runs until Ctrl-C and then prints what it counted.',
    )
    .option(
      '--port <name=host:port[,host:port]>',
      'a port, and its peer (default: the first on this host that speaks); at least two',
      portsOption,
    )
    .option('--config <file>', 'JSON: {ports: [{name, local, remote?}], loss?, seed?, queuePackets?, bufferPackets?}')
    .option('--loss <rules>', 'fault rules between ports (docs/faults.md)')
    .option('--seed <n>', 'of random fault rules (default: 1)', (text) => parseCount(text))
    .option('--duration <time>', 'end by itself after this time', durationOption)
    .option('--json', 'one JSON document on stdout, at the end')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 switch --port a=127.0.0.1:5001 --port b=127.0.0.1:5002
  rocev2 switch --port a=127.0.0.1:5001,127.0.0.1:6001 --port b=127.0.0.1:5002,127.0.0.1:6002 --loss ip-id-lsb=0xff`,
    )
    .action((options: SwitchCommandOptions) => runSwitch(options, new Output(io, options.json === true)));
}

function portsOption(text: string, previous: readonly LiveSwitchPort[] = []): LiveSwitchPort[] {
  try {
    return [...previous, parseSwitchPort(text)];
  } catch (error) {
    if (error instanceof RoceError) throw new InvalidArgumentError(`${error.message}.`);
    throw error;
  }
}

async function runSwitch(options: SwitchCommandOptions, output: Output): Promise<void> {
  const config = options.config === undefined ? EMPTY_SWITCH_CONFIG : await readSwitchConfig(options.config);
  const { ports: configured, loss: configuredLoss, seed: configuredSeed, ...limits } = config;
  const ports = [...configured, ...(options.port ?? [])];
  const loss = options.loss ?? configuredLoss;
  const seed = options.seed ?? configuredSeed ?? 1;
  const faults = loss === undefined ? undefined : FaultPlan.parse(loss, new SeededRandom(seed));
  const live = await openLiveSwitch({ ...limits, ports, ...(faults !== undefined && { faults }) });
  const startMs = performance.now();
  const names = ports.map(({ name }) => name);
  for (const name of names) output.note(`switch port ${name} on ${endpointText(live.local(name))}`);
  if (options.duration === undefined) output.note('Ctrl-C ends it');
  await untilDone(options.duration, output, live);
  const seconds = (performance.now() - startMs) / 1000;
  const { counters } = live;
  await live.close();
  report(output, names, counters, faults?.hits ?? []);
  output.document({
    seconds,
    ports: names.map((name) => ({ name, local: endpointText(live.local(name)), counters: counters[name] })),
    rules: faults?.hits ?? [],
  });
}

/** Waits for Ctrl-C, which is how a switch ends, or for the time to pass. */
async function untilDone(durationNs: number | undefined, output: Output, live: LiveSwitch): Promise<void> {
  const line = new LiveLine(output.io);
  let previous = totalsOf(live);
  const display = setInterval(() => {
    const now = totalsOf(live);
    const seconds = DISPLAY_INTERVAL_MS / 1000;
    const rate = formatRate(((now.bytes - previous.bytes) * 8) / seconds);
    line.update(`${now.packets} frames, ${now.packets - previous.packets} a second, ${rate}, ${now.dropped} dropped`);
    previous = now;
  }, DISPLAY_INTERVAL_MS);
  const { interrupted } = output.io;
  await new Promise<void>((resolve) => {
    const timer =
      durationNs === undefined
        ? undefined
        : setTimeout(resolve, Math.min(TIMEOUT_MS_MAX, Math.ceil(durationNs / NS_PER_MS)));
    const stop = () => {
      clearTimeout(timer);
      resolve();
    };
    if (interrupted.aborted) stop();
    else interrupted.addEventListener('abort', stop, { once: true });
  });
  clearInterval(display);
  line.clear();
}

function totalsOf(live: LiveSwitch): { packets: number; bytes: number; dropped: number } {
  const all = Object.values(live.counters);
  return {
    packets: all.reduce((sum, port) => sum + port.rx_packets, 0),
    bytes: all.reduce((sum, port) => sum + port.rx_bytes, 0),
    dropped: all.reduce((sum, port) => sum + port.tx_dropped_fault + port.tx_dropped_queue_full, 0),
  };
}

function report(
  output: Output,
  names: readonly string[],
  counters: LiveSwitch['counters'],
  rules: FaultPlan['hits'],
): void {
  // What never happened at any port would only hide what did; frames and bytes are always of interest.
  const always = new Set(['rx_packets', 'rx_bytes', 'tx_packets', 'tx_bytes']);
  const counted = Object.keys(counters[names[0]]) as Array<keyof LiveSwitch['counters'][string]>;
  const shown = counted.filter((name) => always.has(name) || names.some((port) => counters[port][name] > 0));
  const columns: Column[] = [
    { title: 'Counter', align: 'left' },
    ...names.map((name): Column => ({ title: name, align: 'right' })),
  ];
  output.table(
    columns,
    shown.map((name) => [name, ...names.map((port) => counters[port][name])]),
  );
  if (rules.length === 0) return;
  output.line();
  output.table(
    [
      { title: 'Rule', align: 'left' },
      { title: 'Hits', align: 'right' },
    ],
    rules.map(({ rule, hits }) => [rule, hits]),
  );
}

function endpointText({ host, port }: UdpEndpoint): string {
  return host.family === 6 ? `[${host.text}]:${port}` : `${host.text}:${port}`;
}
