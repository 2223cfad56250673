import { randomBytes } from 'node:crypto';
import { basename } from 'node:path';
import {
  addExtensionOption,
  addressOption,
  allowHostOption,
  type CliIo,
  CommandFailure,
  defineDocument,
  EXIT_FAILED,
  EXIT_USAGE,
  type Output,
  orInterrupted,
  portOption,
  printing,
  rangeOption,
  readInputFile,
} from '@rocev2/command';
import { loadResult } from '@rocev2/lab/internal';
import type { Command } from 'commander';
import type { IpAddress } from 'rocev2/internal/packet';
import { ROCE_UDP_PORT } from 'rocev2/internal/port';
import { Attachment } from '../attached/attachment.js';
import { Lab } from '../lab/lab.js';
import { QUEUE_PAIRS_MAX } from '../lab/lab-endpoint.js';
import { captureSource, captureState } from '../ladder/source.js';
import type { CaptureState } from '../messages/ladder-messages.js';
import { loadPageFiles } from '../page-files.js';
import { recordingSource } from '../recording.js';
import { type DashboardSource, openDashboardServer } from '../server.js';

/** The fields of `dashboard --json`, printed when the page can be opened. */
interface DashboardResult {
  /** URL of the page. */
  readonly url: string;
}

const DASHBOARD_DOCUMENT = defineDocument<DashboardResult>('dashboard');

/** 128 bits: not to be guessed. */
const TOKEN_BYTES = 16;

interface DashboardOptions {
  readonly bind?: IpAddress;
  readonly port: number;
  readonly qp: number;
  readonly sim?: string;
  readonly capture?: string;
  readonly udpPort: number;
  readonly allowHost?: readonly string[];
  readonly attach?: true | readonly string[];
}

export function register(program: Command, io: CliIo): void {
  addExtensionOption(program.command('dashboard'))
    .description(
      'Serve a web page that shows two endpoints and a switch on this machine: rates, losses, retransmissions, latency, ' +
        'packets in slow motion. You can change recovery scheme, operation and loss while it runs. The page can also show running programs (--attach), ' +
        'a simulation (--sim) or a capture (--capture). Ctrl-C ends it.',
    )
    .option(
      '--bind <address>',
      'address to serve on (default: 127.0.0.1); with another address, --attach or --capture, the URL contains a token',
      addressOption,
    )
    .addOption(allowHostOption())
    .option('-p, --port <port>', 'TCP port; 0: the system chooses', rangeOption(0, 65535), 0)
    .option('-q, --qp <n>', `queue pairs from A to B, at most ${QUEUE_PAIRS_MAX}`, rangeOption(1, QUEUE_PAIRS_MAX), 1)
    .option('--sim <scenario>', "show a simulation: a result of 'sim run --json', or a scenario by name or file")
    .option('--capture <file>', 'show the packets of a pcapng, pcap or --trace file as a ladder')
    .option('--udp-port <port>', 'UDP port of the RoCEv2 packets in a capture', portOption, ROCE_UDP_PORT)
    .option(
      '--attach [which...]',
      'follow running programs with --estats: endpoints, switches, disks, clusters; by process ID, address, control socket or URL (default: all of this user on this host)',
    )
    .option('--json', 'print one JSON document with the URL')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 dashboard
  rocev2 dashboard -q 2                              # two queue pairs share the link
  rocev2 dashboard --sim dcqcn-n2-85us               # queues, rates, CNPs and pauses, with a time slider
  rocev2 dashboard --capture trace.pcapng            # packets over time: losses, NAKs, retransmissions
  rocev2 dashboard --attach                          # all programs with --estats, as they start and end
  rocev2 dashboard --bind 192.0.2.7 --port 8080      # for a projector: the printed URL contains the token`,
    )
    .action(printing(io, dashboard));
}

async function dashboard(options: DashboardOptions, output: Output): Promise<void> {
  const { attach, sim, capture } = options;
  if ([attach, sim, capture].filter((source) => source !== undefined).length > 1) {
    throw new CommandFailure(EXIT_USAGE, 'give only one of --attach, --sim and --capture');
  }
  const files = await loadPageFiles();
  if (capture !== undefined) {
    const source = captureSource(await loadCapture(capture, options.udpPort));
    return serve(source, new Promise(() => {}), files, options, output);
  }
  if (options.attach !== undefined) {
    await using attachment = new Attachment(options.attach === true ? [] : options.attach);
    await attachment.open();
    return await serve(attachment, attachment.died, files, options, output);
  }
  if (options.sim !== undefined) {
    const source = recordingSource(await loadResult(options.sim, output));
    return serve(source, new Promise(() => {}), files, options, output);
  }
  await using lab = new Lab(options.qp);
  const opened = await orInterrupted(
    output.during(
      'starting the lab',
      lab.open().then(() => true),
    ),
    output.io.interrupted,
  );
  if (opened !== undefined) await serve(lab, lab.died, files, options, output);
}

async function serve(
  source: DashboardSource,
  died: Promise<never>,
  files: Awaited<ReturnType<typeof loadPageFiles>>,
  { bind, port, attach, capture, allowHost: allowHosts = [] }: DashboardOptions,
  output: Output,
): Promise<void> {
  const host = bind?.text ?? '127.0.0.1';
  // What only their owner may look into does not become public on loopback either.
  const isPublic = attach === undefined && capture === undefined && (bind === undefined || isLoopback(bind));
  const token = isPublic ? undefined : randomBytes(TOKEN_BYTES).toString('hex');
  const server = await openDashboardServer({ host, port, token, allowHosts, files, source });
  try {
    output.line(server.url);
    output.document(DASHBOARD_DOCUMENT, { url: server.url });
    output.ready('open it in a browser; Ctrl-C ends it');
    await orInterrupted(died, output.io.interrupted);
  } finally {
    await server.close();
  }
}

async function loadCapture(path: string, udpPort: number): Promise<CaptureState> {
  const bytes = await readInputFile(path);
  const state = await Promise.resolve()
    .then(() => captureState(basename(path), bytes, udpPort))
    .catch((cause: Error) => {
      throw new CommandFailure(EXIT_FAILED, `cannot show ${path}: ${cause.message}`, { cause });
    });
  if (state.connections.length > 0) return state;
  const hint = state.format === 'capture' ? `; give --udp-port if they do not use port ${udpPort}` : '';
  throw new CommandFailure(EXIT_FAILED, `there are no RoCEv2 packets in ${path}${hint}`);
}

function isLoopback({ text }: IpAddress): boolean {
  return text === '::1' || text.startsWith('127.');
}
