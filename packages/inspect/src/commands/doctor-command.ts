/** `rocev2 doctor HOST`: what is wrong between this host and another, as far as packets can tell. */

import {
  addressOption,
  type CliIo,
  CommandFailure,
  checkWritable,
  defineDocument,
  EXIT_FAILED,
  EXIT_NO_CONNECTION,
  EXIT_USAGE,
  type FrameFlags,
  type FrameWire,
  frameDeviceOptions,
  frameOption,
  framePortOption,
  linkMtuOption,
  localAddressTowards,
  type Output,
  optionWithDefault,
  portOption,
  printing,
  rangeOption,
  resolveHost,
  SIZE_MAX_BYTES,
  SIZE_MIN_BYTES,
  sizeOption,
  textOption,
} from '@rocev2/command';
import type { Command } from 'commander';
import { NS_PER_MS, parseCount, parseDurationNs, RoceError } from 'rocev2/internal/core';
import { IpAddress } from 'rocev2/internal/packet';
import type { Check, CheckVerdict } from './doctor/check.js';
import { type Examination, examine } from './doctor/examine.js';

/** The fields of `doctor --json`. */
interface DoctorResult extends Examination {
  /** The host that was examined, as named on the command line. */
  readonly target: string;
}

const DOCTOR_DOCUMENT = defineDocument<DoctorResult>('doctor');

interface DoctorOptions {
  readonly port?: number;
  readonly size: number;
  readonly probes: number;
  readonly interval: number;
  readonly dscp: number;
  readonly timeout: number;
  readonly retry: number;
  readonly endpoint?: string;
  readonly bind?: IpAddress;
  readonly frame?: FrameWire;
  readonly framePort?: number;
  readonly linkMtu?: number;
  readonly pcap?: string;
}

const WIDTH = 12;

/** Milliseconds, 1 to 10,000; a number without a unit is milliseconds. */
const intervalOption = textOption((text) => {
  const ms = (/^\d+$/.test(text) ? parseCount(text) * NS_PER_MS : parseDurationNs(text)) / NS_PER_MS;
  if (ms >= 1 && ms <= 10_000) return ms;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `an interval of '${text}'`, 'give 1ms to 10s');
});

/** Adds `rocev2 doctor` to `program`. */
export function register(program: Command, io: CliIo): void {
  program
    .command('doctor')
    .description('Find faults between this host and another: reachability, loss, MTU, DSCP, ICRC, timeouts.')
    .argument('<host>', 'name or address of a host with any RoCEv2 NIC')
    .option(
      '--port <port>',
      'rdma_cm port of an rping server there, to test full packets in both directions',
      portOption,
    )
    .addOption(optionWithDefault('--size <size>', 'largest ping of that server (rping -S)', sizeOption, '8KiB'))
    .addOption(
      optionWithDefault('--probes <n>', 'number of probes, which are RDMA CM requests', rangeOption(1, 65536), '200'),
    )
    .addOption(optionWithDefault('--interval <time>', 'time between probes', intervalOption, '5ms'))
    .addOption(optionWithDefault('--dscp <n>', 'DSCP of the probes', rangeOption(0, 63), '26'))
    .addOption(
      optionWithDefault('--timeout <code>', 'timeout of your queue pairs, 4.096 us x 2^code', rangeOption(0, 31), '17'),
    )
    .addOption(optionWithDefault('--retry <n>', 'retries of your queue pairs', rangeOption(0, 7), '7'))
    .option('--endpoint <which>', 'explain the failures of this running endpoint, by process ID or address')
    .option('--bind <address>', 'RoCE address of this side (default: from the routing table)', addressOption)
    .addOption(frameOption())
    .addOption(framePortOption())
    .addOption(linkMtuOption())
    .option('--pcap <file>', 'write the packets of the examination to this pcapng file')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
Without --port, the host needs only RDMA CM (Linux: the module rdma_cm). --port
needs a service that sends data in both directions: rping -s -P -S 8192.
Each packet of the examination is audited
(packages/inspect/docs/conformance.md).

Exit code 3: the host does not answer. Exit code 1: something else failed.

Examples:
  rocev2 doctor 10.0.0.2
  rocev2 doctor 10.0.0.2 --port 7174 --dscp 26 --timeout 14 --retry 7
  rocev2 doctor 127.0.0.2 --bind 127.0.0.1 --endpoint 127.0.0.1`,
    )
    .action(printing(io, doctor));
}

async function doctor(host: string, options: DoctorOptions, output: Output): Promise<void> {
  const { size, bind, port, pcap, endpoint } = options;
  if (size < SIZE_MIN_BYTES || size > SIZE_MAX_BYTES) {
    throw new CommandFailure(EXIT_USAGE, `--size is ${size}; it must be ${SIZE_MIN_BYTES} to ${SIZE_MAX_BYTES} bytes`);
  }
  await checkWritable(pcap);
  const remote = IpAddress.parse(await resolveHost(host));
  const wire = await frameDeviceOptions(wireOf(options));
  const local = bind ?? (await localAddressTowards(remote));
  if (local.text === remote.text) {
    throw new CommandFailure(
      EXIT_USAGE,
      `${remote} is also the address of this side: give this side another address with --bind`,
    );
  }
  const work = examine(
    {
      remote,
      local,
      wire,
      probes: options.probes,
      intervalMs: options.interval,
      sizeBytes: size,
      dscp: options.dscp,
      timeout: options.timeout,
      retryCount: options.retry,
      ...(port !== undefined && { servicePort: port }),
      ...(pcap !== undefined && { pcap }),
      ...(endpoint !== undefined && { endpoint }),
    },
    output,
  );
  const examination = await output.during(`examining ${remote} from ${local}`, work);
  print(examination, output);
  output.document(DOCTOR_DOCUMENT, { target: host, ...examination });
  output.throwIfInterrupted();
  failIfIll(examination);
}

function wireOf({ bind, frame, framePort, linkMtu }: DoctorOptions): FrameFlags {
  return {
    ...(bind !== undefined && { bind }),
    ...(frame !== undefined && { frame }),
    ...(framePort !== undefined && { framePort }),
    ...(linkMtu !== undefined && { linkMtu }),
  };
}

function print({ local, remote, checks }: Examination, output: Output): void {
  const { colors } = output;
  const color: Record<CheckVerdict, (text: string) => string> = {
    ok: colors.green,
    warning: colors.yellow,
    failed: colors.red,
    'cannot tell': colors.cyan,
    'not tested': colors.dim,
  };
  output.line(`${remote}, examined from ${local}`);
  for (const { name, verdict, text, advice } of checks) {
    output.line(`  ${color[verdict](verdict.padEnd(WIDTH))}${name.padEnd(10)}${text}`);
    if (advice !== undefined) output.line(`${' '.repeat(2 + WIDTH + 10)}${advice}`);
  }
}

function failIfIll({ checks, path, service }: Examination): void {
  const failed = checks.filter(({ verdict }: Check) => verdict === 'failed');
  if (failed.length === 0) return;
  const isSilent = path?.answered === 0 && (service === null || service.refusal !== null);
  const names = failed.map(({ name }) => name).join(', ');
  throw new CommandFailure(isSilent ? EXIT_NO_CONNECTION : EXIT_FAILED, `failed: ${names}`);
}
