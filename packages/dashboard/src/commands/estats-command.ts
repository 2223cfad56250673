import {
  alternatives,
  type CliIo,
  choiceOption,
  countOption,
  durationOption,
  optionWithDefault,
  printing,
} from '@rocev2/command';
import type { Command } from 'commander';
import { STAGES } from 'rocev2/internal/estats';
import { diagnoseEndpoints } from './estats/diagnose.js';
import { dump } from './estats/dump.js';
import { hist } from './estats/hist.js';
import { top } from './estats/top.js';

export function register(program: Command, io: CliIo): void {
  const estats = program
    .command('estats')
    .description(
      'Inspect endpoints that run with telemetry (bw, lat: --estats; openDevice({estats: true})): the latency of every work ' +
        'request, from posted (T1) through sent (T2, T3), answered (T4) and completed (T5) to polled (T6). Without -e: all endpoints of this user on this host.',
    )
    .addHelpText(
      'after',
      `
Examples:
  rocev2 estats top                                 # every connection, refreshed every second
  rocev2 estats diagnose                            # the cause of latency: sender, pacing, network, responder, application
  rocev2 estats hist --stage t4_t3 --op RDMA_WRITE
  rocev2 estats dump --now -e 127.0.0.2
  rocev2 bw write 127.0.0.1 -D 60s --estats         # an endpoint to inspect`,
    );

  attachOptions(
    estats.command('top').description('Show the traffic of every connection and the stages of its latency.'),
  )
    .addOption(optionWithDefault('--interval <time>', 'time between two updates', durationOption, '1s'))
    .option('--once', 'print once and exit, also on a terminal')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 estats top
  rocev2 estats top --once -e 127.0.0.2
  rocev2 estats top --once --json -e http://192.0.2.7:9400      # an endpoint with --estats-http 192.0.2.7:9400`,
    )
    .action(printing(io, top));

  attachOptions(estats.command('hist').description('Show the latency of one stage: quantiles and a histogram.'))
    .option('--stage <stage>', alternatives(STAGES), choiceOption(STAGES), 't6_t1')
    .option('--op <name>', 'only this operation, e.g. RDMA_WRITE')
    .option('--conn <name>', "only this connection, by its name in 'top'")
    .option('--status <name>', 'only work requests with this status, e.g. SUCCESS')
    .option('--hgrm', 'print .hgrm text for HdrHistogram plotters, in microseconds')
    .addHelpText(
      'after',
      `
Stages: T1 posted, T2 first packet, T3 last packet, T4 answered, T5 completed,
T6 polled; t4_t3 is the time between T3 and T4.

Examples:
  rocev2 estats hist -e 127.0.0.2
  rocev2 estats hist --stage t4_t3 --op RDMA_READ --minutes 5
  rocev2 estats hist -e 127.0.0.2 --hgrm > latency.hgrm`,
    )
    .action(printing(io, hist));

  attachOptions(
    estats
      .command('dump')
      .description('Show the state of queue pairs when a work request was slow or failed, with their last packets.'),
  )
    .option('--now', 'dump every connection now')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 estats dump
  rocev2 estats dump --now -e 127.0.0.2
  rocev2 estats dump --json | jq '.endpoints[].dumps'`,
    )
    .action(printing(io, dump));

  attachOptions(
    estats.command('diagnose').description('Show which side causes the latency of each connection, and why.'),
  )
    .option(
      '--peer <url>',
      'telemetry URL of the peer on another host (its --estats-http); may be repeated',
      (url: string, before: readonly string[] = []) => [...before, url],
    )
    .addHelpText(
      'after',
      `
Examples:
  rocev2 estats diagnose
  rocev2 estats diagnose -e 127.0.0.2 --minutes 5
  rocev2 estats diagnose -e 127.0.0.2 --peer http://192.0.2.7:9400`,
    )
    .action(printing(io, diagnoseEndpoints));
}

function attachOptions(command: Command): Command {
  return command
    .option('-e, --endpoint <which>', 'process ID, IP address, control socket or http://HOST:PORT')
    .option('--minutes <n>', 'number of minutes to look back, in addition to the current minute', countOption, 1)
    .option('--json', 'print one JSON document');
}
