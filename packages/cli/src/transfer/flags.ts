/**
 * `bw` and `lat` take their options from this table, and docs/perftest.md is made of it
 * (`node scripts/perftest-doc.js`).
 */

import {
  choiceOption,
  countOption,
  messageSizeOption,
  mtuOption,
  portOption,
  positiveNumberOption,
  rangeOption,
  secondsOption,
} from '@rocev2/command';
import { TRANSFER_TRANSPORTS } from './transport.js';

export type ToolName = 'bw' | 'lat';

interface FlagEntry {
  readonly flags: string;
  readonly also?: readonly string[];
  readonly tools?: readonly ToolName[];
}

export interface TakenFlag extends FlagEntry {
  readonly meaning: string;
  readonly parse?: (text: string) => unknown;
  readonly preset?: string | Readonly<Record<ToolName, string>>;
}

export interface AcceptedFlag extends FlagEntry {
  readonly instead: string;
}

export interface MissingFlag extends FlagEntry {
  readonly reason: string;
}

const BW = ['bw'] as const;
const LAT = ['lat'] as const;

const transportOption = choiceOption(TRANSFER_TRANSPORTS);
const anyCaseTransport = Object.assign((text: string) => transportOption(text.toLowerCase()), {
  choices: TRANSFER_TRANSPORTS,
});

export const TAKEN_FLAGS: readonly TakenFlag[] = [
  { flags: '-p, --port <port>', parse: portOption, preset: '18515', meaning: 'TCP port for connection setup' },
  {
    flags: '-s, --size <bytes>',
    parse: messageSizeOption,
    preset: { bw: '64KiB', lat: '2' },
    meaning: 'message size, e.g. 4096, 64KiB or 4MiB',
  },
  { flags: '-a, --all', meaning: 'run all sizes from 2 bytes to 8 MiB (UD: up to the path MTU), one line each' },
  {
    flags: '-n, --iters <n>',
    parse: countOption,
    preset: { bw: '5000', lat: '1000' },
    meaning: 'messages per queue pair',
  },
  {
    flags: '-D, --duration <time>',
    parse: secondsOption,
    meaning: 'run for this time, e.g. 3s, instead of a number of messages',
  },
  {
    flags: '--run_infinitely',
    tools: BW,
    meaning: 'run until Ctrl-C, and print a line at the interval of -D (default: 5s)',
  },
  {
    flags: '-c, --transport <type>',
    also: ['--connection'],
    parse: anyCaseTransport,
    preset: 'rc',
    meaning:
      'rc; uc: write and send, without retransmission; ud: send of one packet, without retransmission; multipath: rc with --recovery multipath',
  },
  {
    flags: '-b, --bidirectional',
    also: ['--bidir'],
    tools: BW,
    meaning: 'both sides send at the same time; the result is the sum',
  },
  { flags: '-q, --qp <n>', parse: countOption, preset: '1', tools: BW, meaning: 'queue pairs' },
  {
    flags: '-t, --tx-depth <n>',
    parse: countOption,
    preset: '128',
    tools: BW,
    meaning: 'messages in flight per queue pair',
  },
  {
    flags: '-r, --rx-depth <n>',
    parse: rangeOption(1, 16_384),
    meaning: 'receives posted per queue pair in send tests (default: 512; UC and UD: one per message, at most 16384)',
  },
  {
    flags: '-l, --post_list <n>',
    parse: countOption,
    tools: BW,
    preset: '1',
    meaning: 'messages posted with one doorbell',
  },
  {
    flags: '-Q, --cq-mod <n>',
    parse: countOption,
    tools: BW,
    preset: '1',
    meaning: 'request a completion for every nth message only; perftest uses 100',
  },
  {
    flags: '-I, --inline_size <bytes>',
    parse: rangeOption(0, 65_536),
    preset: '0',
    meaning: 'copy messages up to this size into the work request (write and send)',
  },
  {
    flags: '-o, --outs <n>',
    parse: rangeOption(1, 255),
    preset: '16',
    meaning: 'READs and atomics in flight per queue pair',
  },
  {
    flags: '-e, --events',
    meaning: 'sleep until a completion event; bw always does, lat polls without -e',
  },
  { flags: '-m, --mtu <bytes>', parse: mtuOption, preset: '4096', meaning: 'path MTU: 256, 512, 1024, 2048 or 4096' },
  {
    flags: '-u, --timeout <code>',
    also: ['--qp-timeout'],
    parse: rangeOption(0, 31),
    meaning: 'local ACK timeout, 4.096 us x 2^code; 0: none (default: 14)',
  },
  {
    flags: '--retry-cnt <n>',
    also: ['--retry_count'],
    parse: rangeOption(1, 7),
    meaning: 'retries before the connection fails, 1 to 7 (default: 7)',
  },
  {
    flags: '-R, --rdma-cm',
    also: ['--rdma_cm'],
    meaning: 'with --perftest: connect through rdma_cm, as perftest -R does',
  },
  {
    flags: '-N, --noPeak',
    tools: BW,
    meaning: 'do not compute the peak, which is never computed above 20000 messages or with -D',
  },
  { flags: '--report_gbits', tools: BW, meaning: 'report Gb/s instead of MiB/s; -w uses the same unit' },
  { flags: '--cpu_util', tools: BW, meaning: 'report the processor load of this host in percent' },
  {
    flags: '-w, --limit_bw <value>',
    parse: positiveNumberOption,
    tools: BW,
    meaning: 'exit with code 1 if the average is below this many MiB/s (Gb/s with --report_gbits)',
  },
  {
    flags: '-y, --limit_msgrate <value>',
    parse: positiveNumberOption,
    tools: BW,
    meaning: 'exit with code 1 below this many million messages per second',
  },
];

export const ACCEPTED_FLAGS: readonly AcceptedFlag[] = [
  { flags: '-d, --ib-dev <dev>', instead: 'there are no devices to choose from; --bind chooses the address' },
  { flags: '--ib-port <port>', instead: 'a software NIC has one port; -i is --interval here' },
  { flags: '-x, --gid-index <index>', instead: 'there is no GID table; --bind chooses the address' },
  { flags: '-F, --CPU-freq', instead: 'the clock counts nanoseconds at any processor frequency' },
  {
    flags: '-S, --sl <sl>',
    instead: 'a UDP socket sends no VLAN priority; the switch configuration sorts traffic by DSCP',
  },
  { flags: '-f, --margin <seconds>', instead: 'the whole time of -D counts' },
  { flags: '--ipv6', instead: 'the address of --bind decides' },
  { flags: '--force-link <type>', instead: 'the link is always Ethernet' },
];

export const MISSING_FLAGS: readonly MissingFlag[] = [
  { flags: '-A, --atomic_type <type>', reason: 'the only atomic operation here is FETCH_AND_ADD' },
  { flags: '-C, --report-cycles', tools: LAT, reason: 'times are in microseconds' },
  {
    flags: '-H, --report-histogram',
    tools: LAT,
    reason: '--json has the percentiles, and `rocev2 estats hist` a histogram',
  },
  { flags: '-U, --report-unsorted', tools: LAT, reason: 'the samples themselves are not printed' },
  { flags: '--latency_gap <ns>', tools: LAT, reason: 'each message follows the last one immediately' },
  { flags: '-g, --mcg', reason: 'there is no multicast' },
  { flags: '-M, --MGID <gid>', reason: 'there is no multicast' },
  { flags: '-L, --hop_limit <n>', reason: 'the UDP socket sets the hop limit' },
  { flags: '-O, --dualport', reason: 'a NIC has one port; start two runs' },
  { flags: '-T, --tos <value>', reason: 'programs set `trafficClass` in an address vector; there is no option for it' },
  { flags: '--tclass <value>', reason: 'programs set `trafficClass` in an address vector; there is no option for it' },
  { flags: '-W, --report-counters <names>', reason: 'the counters that moved are in --json' },
  { flags: '-X, --vector <n>', reason: 'there are no completion vectors' },
  { flags: '-z, --com_rdma_cm', reason: '-R connects through rdma_cm' },
  { flags: '--out_json', reason: '--json prints the document on standard output' },
  { flags: '--out_json_file <file>', reason: '--json prints the document on standard output' },
  { flags: '--output <units>', reason: '--json has bandwidth, message rate and latency' },
  { flags: '--dlid <lid>', reason: 'RoCE has no LIDs' },
  { flags: '--dont_xchg_versions', reason: 'the two sides agree on the MTU in this exchange' },
  { flags: '--source_ip <address>', reason: '--bind chooses the address' },
  { flags: '--mr_per_qp', reason: 'all queue pairs share one region' },
  { flags: '--odp', reason: 'the NIC uses process memory, which needs no pinning' },
  { flags: '--mmap <file>', reason: 'messages are always sent from process memory' },
  { flags: '--use_hugepages', reason: 'messages are always sent from process memory' },
  { flags: '--perform_warm_up', reason: 'run the command twice; the first run warms up' },
  { flags: '--pkey_index <n>', reason: 'the P_Key is always 0xffff' },
  { flags: '--report-both', tools: BW, reason: '--json has both directions of -b' },
  { flags: '--report-per-port', tools: BW, reason: 'a NIC has one port' },
  { flags: '--reversed', tools: BW, reason: 'start the client on the other host' },
  { flags: '--recv_post_list <n>', reason: 'receives are posted one by one' },
  { flags: '--inline_recv <bytes>', reason: 'receives always use registered memory' },
  { flags: '--use-srq', reason: '-r posts receives per queue pair' },
  { flags: '--use_old_post_send', reason: 'there is only one way to post' },
  { flags: '--wait_destroy <seconds>', reason: 'resources are freed immediately' },
  { flags: '--disable_pcie_relaxed', reason: 'there is no PCIe' },
  { flags: '--rate_limit <rate>', tools: BW, reason: '--rate 10Gbps paces the sender' },
  { flags: '--rate_units <units>', tools: BW, reason: '--rate includes its unit, such as 10Gbps' },
  { flags: '--rate_limit_type <type>', tools: BW, reason: '--rate paces the sender' },
  { flags: '--burst_size <n>', tools: BW, reason: '--rate paces every packet' },
  { flags: '--typical_pkt_size <bytes>', tools: BW, reason: '--rate paces every packet' },
  { flags: '--aes_xts', reason: 'the NIC has no encryption' },
];

export function isFor(tool: ToolName, { tools }: FlagEntry): boolean {
  return tools === undefined || tools.includes(tool);
}

export function presetFor(tool: ToolName, { preset }: TakenFlag): string | undefined {
  return typeof preset === 'object' ? preset[tool] : preset;
}
