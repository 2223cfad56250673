import {
  type CliIo,
  defineDocument,
  type HostReport,
  hostReport,
  leftAligned,
  Output,
  packageVersion,
  rightAligned,
} from '@rocev2/command';
import type { Command } from 'commander';

const INFO_DOCUMENT = defineDocument<HostReport>('info');

interface InfoOptions {
  readonly json?: true;
}

export function register(program: Command, io: CliIo): void {
  program
    .command('info')
    .description('Print the RDMA capabilities of this machine: addresses, sockets, checksums, UDP port 4791, limits.')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
Nothing is sent. UDP port 4791 is bound for a moment on all addresses; it can be
in use there, and free on a single address.

Examples:
  rocev2 info
  rocev2 info --json | jq .addresses`,
    )
    .action((options: InfoOptions) => info(new Output(io, options.json === true)));
}

async function info(output: Output): Promise<void> {
  const report = await hostReport();
  printReport(output, report);
  output.document(INFO_DOCUMENT, report);
}

function printReport(output: Output, report: HostReport): void {
  const { versions, platform, arch } = process;
  output.line(`rocev2 ${packageVersion()} on Node.js ${versions.node}, ${platform} ${arch}`);
  output.line();
  output.table(
    [...leftAligned('Interface', 'Address', 'GID'), ...rightAligned('Link MTU', 'Path MTU')],
    report.addresses.map((address) => [
      address.interface,
      address.address,
      address.gid,
      address.linkMtu ?? 'unknown',
      address.pathMtu ?? 'unknown',
    ]),
  );
  output.line();
  const { batchedUdp, socketOptions } = report;
  const answer = (available: boolean, reason: string) => (available ? 'yes' : `no: ${reason}`);
  output.line(`Socket options (koffi)      ${answer(socketOptions.available, socketOptions.reason)}`);
  output.line(`Batches, GSO, GRO, ECN      ${answer(batchedUdp.available, batchedUdp.reason)}`);
  output.line(`CRC-32                      ${report.crc32}`);
  output.line(`AES-GCM                     ${report.cipher}`);
  for (const { family, free, reason, holder } of report.ports) {
    const by = holder === undefined ? '' : `, used by process ${holder.pid}: ${holder.command}`;
    output.line(`UDP port 4791 over IPv${family}     ${free ? 'free' : `not free: ${reason}${by}`}`);
  }
  output.line(`Kernel modules for RDMA     ${report.kernelModules.join(', ') || 'none'}`);
  for (const [name, value] of Object.entries(report.limits)) {
    output.line(`${name.padEnd(28)}${value ?? 'unknown'}`);
  }
  if (report.kernelModules.includes('rdma_rxe')) {
    output.line();
    output.line('rdma_rxe has UDP port 4791 of its network namespace: give rocev2 another namespace.');
  }
}
