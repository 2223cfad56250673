/** `rocev2 demo`, which is `npm start`: what the project does, on this machine, in less than a minute. */

import {
  addAliasedOption,
  type CliIo,
  CommandFailure,
  defineDocument,
  EXIT_INTERRUPTED,
  EXIT_VERIFICATION_FAILED,
  type Output,
  orInterrupted,
  printing,
} from '@rocev2/command';
import { type Command, Option } from 'commander';
import { formatNs } from 'rocev2/internal/core';
import { type RecoveryName, senderTraits } from 'rocev2/internal/retransmit';
import {
  DEMO_LOSS_RULE,
  runVerifiedOperations,
  type VerifiedOperations,
  type VerifiedStep,
} from './demo/verified-operations.js';
import { type Comparison, compareSchemes, type LivelockRun } from './livelock/scheme-comparison.js';
import { printRuns } from './livelock/table.js';
import {
  DEFAULT_WINDOW_PACKETS,
  PAPER_MESSAGE_BYTES,
  PAPER_MTU,
  PAPER_RULE,
  secondsOption,
} from './livelock-command.js';

/** The fields of `demo --json`. */
export interface DemoResult {
  /** Whether every byte was correct, and only go-back-0 delivered nothing. */
  readonly verified: boolean;
  /** First part: every operation, verified. */
  readonly operations: VerifiedOperations;
  /** Second part: the livelock of go-back-0. */
  readonly livelock: Comparison;
}

const DEMO_DOCUMENT = defineDocument<DemoResult>('demo');

/** One of each kind, from the one that sends most again to the one that sends least. */
const SHOWN_SCHEMES: readonly RecoveryName[] = ['go-back-0', 'go-back-n', 'selective-repeat'];

interface DemoOptions {
  readonly duration: number;
}

/** Adds `rocev2 demo` to `program`. */
export function register(program: Command, io: CliIo): void {
  const command = program
    .command('demo')
    .description(
      'Run two endpoint processes and a switch process on this machine. SEND, WRITE, READ and atomics are verified byte by byte ' +
        'while packets are lost. Then go-back-0 runs into its livelock. No hardware and no privileges are needed.',
    );
  addAliasedOption(
    command,
    new Option('-D, --duration <time>', 'duration of each livelock run')
      .argParser(secondsOption)
      .default(1.5, '1500ms'),
    ['--seconds'],
  )
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 demo
  rocev2 demo --duration 3s --json`,
    )
    .action(printing(io, demo));
}

async function demo({ duration: seconds }: DemoOptions, output: Output): Promise<void> {
  const { bold, dim } = output.colors;
  output.line(bold('RDMA without an RDMA NIC'));
  output.line(
    'Three processes run on this machine: endpoint A, endpoint B, and an Ethernet switch between them. Each endpoint is',
  );
  output.line(
    'a software NIC. They exchange RoCEv2 packets, the same bytes as hardware, in Ethernet frames over loopback.',
  );
  output.line();
  output.line(bold('1. Every operation, every byte checked'));
  output.line(dim(`The switch loses one packet in a hundred (${DEMO_LOSS_RULE}). No program notices.`));
  output.line();
  const operations = await unlessInterrupted(
    output,
    runVerifiedOperations((step) => output.line(stepLine(step, output))),
  );
  const { packetsForwarded, packetsDropped } = operations;
  output.line();
  output.line(
    `The switch forwarded ${packetsForwarded} packets and lost ${packetsDropped}; the NICs retransmitted them.`,
  );
  output.line();
  output.line(bold('2. Why the recovery scheme matters: the livelock of go-back-0'));
  output.line(
    dim('A 4 MiB message is 4096 packets. The switch drops one packet in 256, as in a SIGCOMM 2016 experiment.'),
  );
  output.line();
  const comparison = await compareSchemes(
    {
      ops: ['write', 'read'],
      schemes: SHOWN_SCHEMES,
      lossRule: PAPER_RULE,
      seed: 1,
      messageBytes: PAPER_MESSAGE_BYTES,
      mtu: PAPER_MTU,
      seconds,
      windowPackets: DEFAULT_WINDOW_PACKETS,
      trace: undefined,
    },
    output,
  );
  printRuns(output, comparison.runs);
  output.line();
  const failure = failureOf(operations, comparison);
  if (failure === undefined && comparison.isComplete) {
    output.line(
      'go-back-0 restarts the message after every loss. A message longer than the distance between losses never',
    );
    output.line(
      'arrives, however busy the link is. go-back-N restarts at the lost packet and wastes the packets in flight (W).',
    );
    output.line('Selective repeat retransmits only the lost packet.');
    output.line();
    output.line(dim('More: rocev2 livelock, rocev2 bw, rocev2 --help'));
  }
  output.document(DEMO_DOCUMENT, { verified: failure === undefined, operations, livelock: comparison });
  if (!comparison.isComplete)
    throw new CommandFailure(EXIT_INTERRUPTED, 'interrupted: the demo did not run to its end');
  if (failure !== undefined) throw new CommandFailure(EXIT_VERIFICATION_FAILED, failure);
}

function stepLine({ step, text, seconds, verified }: VerifiedStep, { colors }: Output): string {
  const mark = verified ? colors.green('ok   ') : colors.red('WRONG');
  return `  ${mark} ${step.padEnd(9)}  ${text} ${colors.dim(`(${formatNs(seconds * 1e9)})`)}`;
}

function failureOf(operations: VerifiedOperations, { runs }: Comparison): string | undefined {
  const wrong = operations.steps.find(({ verified }) => !verified);
  if (wrong !== undefined) return `${wrong.step}: the data is wrong`;
  return runs.map(shapeOf).find((failure) => failure !== undefined);
}

function shapeOf({ op, scheme, messagesCompleted, verified, failure }: LivelockRun): string | undefined {
  if (failure !== null) return `${op} under ${scheme}: the queue pair failed with ${failure}`;
  if (verified === false) return `${op} under ${scheme} delivered wrong data`;
  const isLivelocked = messagesCompleted === 0;
  if (isLivelocked === senderTraits(scheme).restartsMessages) return undefined;
  return `${op} under ${scheme} completed ${messagesCompleted} messages`;
}

async function unlessInterrupted<T>(output: Output, work: Promise<T>): Promise<T> {
  const result = await orInterrupted(work, output.io.interrupted);
  if (result === undefined) throw new CommandFailure(EXIT_INTERRUPTED, 'interrupted');
  return result;
}
