/** `rocev2 sim`: scenarios in virtual time, on the same NIC and switch code that runs on the wire. */

import { availableParallelism } from 'node:os';
import {
  addExtensionOption,
  type CliIo,
  countOption,
  defineDocument,
  leftAligned,
  Output,
  printing,
} from '@rocev2/command';
import { type Command, Option } from 'commander';
import { ORIGINALS } from '../sim/scenario/like.js';
import type { ScenarioFile } from '../sim/scenario/schema.js';
import { BUILT_IN_SCENARIOS } from '../sim/scenarios/index.js';
import { collect } from './collect.js';
import { showFigure } from './sim/figures/figure-command.js';
import { runCommand } from './sim/run-command.js';
import { showCommand } from './sim/show-command.js';
import { DEFAULT_REDIS } from './sim/sweep/redis-queue.js';
import { sweepCommand, type WorkerOptions, workCommand } from './sim/sweep/sweep-command.js';
import { addSweepOutputOptions } from './sim/sweep/sweep-options.js';

/** The fields of `sim list --json`. */
interface ScenarioList {
  /** Scenario files, as docs/scenarios.md describes them. */
  readonly scenarios: readonly ScenarioFile[];
}

const SIM_LIST_DOCUMENT = defineDocument<ScenarioList>('sim-list');

function likeOption(): Option {
  return new Option(
    '--like <original>',
    'use the rate control settings of this simulator or NIC, and its switch settings where the scenario has none',
  ).choices(ORIGINALS);
}

const REDIS_HELP = `the Redis server (default: environment variable ROCEV2_REDIS, else ${DEFAULT_REDIS})`;

/** Adds `rocev2 sim` to `program`. */
export function register(program: Command, io: CliIo): void {
  const sim = program
    .command('sim')
    .description('Run scenarios in virtual time, with the real NIC and switch code, on links of any rate and length.')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 sim list
  rocev2 sim run dcqcn-n10-4us --report dcqcn.html
  rocev2 sim sweep dcqcn-n10-4us --over seed=1..4 --over nic.cc=none,dcqcn`,
    );
  addExtensionOption(sim.command('run'))
    .description('Run one scenario. The exit code is 1 if one of its assertions fails.')
    .argument('<scenario>', "a name from 'rocev2 sim list', or a JSON file")
    .option('--set <path=value>', 'override a field; may be repeated', collect)
    .addOption(likeOption())
    .option('--seed <n>', 'seed of all random numbers', countOption)
    .option('--cores <n>', 'number of cores; does not change the result', countOption)
    .option('--report <file>', 'write an HTML page with figures and tables')
    .option('--plot <file>', 'write queues, rates and signals as an SVG chart')
    .option(
      '--topology <file>',
      'read the topology from this file of the HPCC simulator or ns3-rdma instead of the scenario',
    )
    .option('--flows <file>', 'read flows from such a file instead of the scenario')
    .addOption(
      new Option('--flow-format <name>', 'format of the --flows file').choices(['hpcc', 'ns3-rdma']).default('hpcc'),
    )
    .option('--pcap <file>', 'capture the frames on the cable of one host, as pcapng')
    .option('--trace <file>', 'trace packets and events of the NIC of one host, as JSON lines')
    .option('--at <host>', 'the host of --pcap and --trace (default: receiver of the last flow)')
    .option('--series <file>', 'write R_C, R_T, alpha and window of each flow, as CSV or .json')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 sim run dcqcn-n10-4us
  rocev2 sim run dcqcn-n10-4us --set nic.cc=none --report none.html
  rocev2 sim run dcqcn-n10-4us --like hpcc-ns3
  rocev2 sim run livelock-go-back-0 --json | jq .summary.efficiency
  rocev2 sim run dcqcn-n2-4us --pcap h2.pcapng --at h2
  rocev2 sim run dcqcn-n16-4us --set payload=virtual
  rocev2 sim run fabric.json --cores 2
  rocev2 sim run dcqcn-n2-4us --trace h0.ndjson --at h0 --series rates.csv --set sample=10us
  rocev2 sim run fct-dcqcn --topology fat.txt --flows flow.txt
Fields of a scenario file: packages/lab/docs/scenarios.md.`,
    )
    .action(printing(io, runCommand));
  sim
    .command('list')
    .description('List the built-in scenarios.')
    .option('--json', 'print the scenario files in one JSON document')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 sim list
  rocev2 sim list --json | jq '.scenarios[] | select(.name == "pfc-n2")' > mine.json      # a copy to start from`,
    )
    .action((options: { json?: true }) => list(new Output(io, options.json === true)));
  sim
    .command('show')
    .description('Print a scenario as a file to edit, with its fields overridden.')
    .argument('<scenario>', "a name from 'rocev2 sim list', or a JSON file")
    .option('--set <path=value>', 'override a field; may be repeated', collect)
    .addOption(likeOption())
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 sim show dcqcn-n10-4us > mine.json
  rocev2 sim show pfc-n2 --set nic.cc=none --json`,
    )
    .action(printing(io, showCommand));
  sim
    .command('figure')
    .description('Reproduce a published figure: published value, our value, difference, verdict.')
    .argument('[figure]', 'a name from --list')
    .option('--list', 'list the figures')
    .option('--plot <file>', 'write our values over the published ones as an SVG chart')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
A value is inside if it differs by at most 5 % (fluid models) or 10 %
(packets). The verdict does not change the exit code.
packages/lab/docs/figures.md lists all figures.

Examples:
  rocev2 sim figure --list
  rocev2 sim figure conext16-4 --plot figure4.svg
  rocev2 sim figure ns3-pfc --json | jq '.figures[].values[] | select(.verdict == "outside")'`,
    )
    .action(printing(io, showFigure));
  const sweep = addExtensionOption(sim.command('sweep'))
    .description('Run a scenario with every combination of seeds and values, on all cores.')
    .argument('<scenario>', "a name from 'rocev2 sim list', or a JSON file")
    .option('--over <path=values>', 'an axis: seed=1..8 or nic.cc=none,dcqcn; may be repeated', collect)
    .option('--set <path=value>', 'override a field in all runs; may be repeated', collect)
    .addOption(likeOption())
    .option('--seed <n>', 'the seed of all runs', countOption);
  addSweepOutputOptions(sweep)
    .option('--no-assert', 'exit with 0 even if assertions fail')
    .option('--jobs <n>', 'runs in parallel on this machine', countOption, availableParallelism())
    .addOption(new Option('--executor <name>', 'where runs are computed').choices(['local', 'redis']).default('local'))
    .option('--redis <url>', REDIS_HELP)
    .option('--fresh', 'with redis: ignore stored results')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
Over several seeds, flows start up to 10 us late at random, unless the scenario
has a jitter. --plot has the first other axis as x, and a line for each
combination of the rest. Values may be JSON objects.

With --executor redis, 'rocev2 sim worker' computes the runs on any number of
machines. Results stay in Redis for a week; the same sweep reuses them.

Examples:
  rocev2 sim sweep dcqcn-n10-4us --over seed=1..4
  rocev2 sim sweep dcqcn-n10-4us --over seed=1..400 --executor redis --redis redis://192.0.2.1:6379
  rocev2 sim sweep dcqcn-n10-4us --over topology.delay=1us,4us,16us --over nic.cc=none,dcqcn
  rocev2 sim sweep livelock-go-back-n --over nic.inflight=16,32,64 --json > sweep.json
  rocev2 sim sweep dcqcn-n2-4us --over topology.delay=1us,4us,16us --over seed=1..5 --csv runs.csv --plot queue.svg --y queueMeanBytes
  rocev2 sim sweep dcqcn-n2-4us --over 'nic.cc={"name":"dcqcn","preset":"ns3-rdma"},{"name":"dcqcn","gain":0.01}'`,
    )
    .action(printing(io, sweepCommand));
  addExtensionOption(sim.command('worker'))
    .description('Compute the runs of sweeps that are queued in a Redis server, until Ctrl-C.')
    .option('--redis <url>', REDIS_HELP)
    .option('--jobs <n>', 'runs at once', countOption, availableParallelism())
    .addHelpText(
      'after',
      `
Sweeps and workers need the same version of rocev2 and the same extensions,
and the packages bullmq and ioredis. A run whose worker dies moves to another
worker after 30 s.

Examples:
  rocev2 sim worker --redis redis://192.0.2.1:6379
  ROCEV2_REDIS=redis://:secret@192.0.2.1 rocev2 sim worker --jobs 4`,
    )
    .action((options: WorkerOptions) => workCommand(options, new Output(io, false)));
}

function list(output: Output): void {
  output.table(
    leftAligned('Scenario', 'What it shows'),
    BUILT_IN_SCENARIOS.map(({ name, title }) => [name, title ?? '']),
  );
  output.document(SIM_LIST_DOCUMENT, { scenarios: BUILT_IN_SCENARIOS });
}
