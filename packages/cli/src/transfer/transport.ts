import { alternatives, choiceOption } from '@rocev2/command';
import type { Command } from 'commander';
import { TRANSPORTS, type TransportName } from 'rocev2/internal/cm';
import { RoceError } from 'rocev2/internal/core';
import { checkDatagramSize, type TransferOp } from './endpoint.js';
import type { TransferOptions } from './transfer-options.js';

const MULTIPATH = 'multipath';
export const TRANSFER_TRANSPORTS = [...TRANSPORTS, MULTIPATH] as const;

export type WrittenTransferOptions = Omit<TransferOptions, 'transport'> & {
  readonly transport: (typeof TRANSFER_TRANSPORTS)[number];
};

export function addTransportOption(command: Command, text: string): Command {
  return command.option('--transport <type>', `${alternatives(TRANSPORTS)}: ${text}`, choiceOption(TRANSPORTS), 'rc');
}

const REPEATS_NOTHING = 'it does not retransmit or wait for acknowledgements';
const REFUSED_OPTIONS: Readonly<Record<TransportName, Readonly<Record<string, string>>>> = {
  rc: {},
  uc: {
    recovery: REPEATS_NOTHING,
    recoveryParams: REPEATS_NOTHING,
    timeout: REPEATS_NOTHING,
    retryCnt: REPEATS_NOTHING,
    totalTimeout: REPEATS_NOTHING,
    rdmaCm: 'rdma_cm does not connect UC queue pairs; perftest -R does not either',
  },
  ud: {
    recovery: REPEATS_NOTHING,
    recoveryParams: REPEATS_NOTHING,
    timeout: REPEATS_NOTHING,
    retryCnt: REPEATS_NOTHING,
    totalTimeout: REPEATS_NOTHING,
    rdmaCm:
      'bw and lat connect through rdma_cm, and datagrams have no connection; rocev2 udaddy resolves a datagram service',
    cc: 'rate control works on a connection, and UD has none',
    rate: 'rate control works on a connection, and UD has none',
    ccParams: 'rate control works on a connection, and UD has none',
  },
};
const OPERATIONS: Readonly<Record<TransportName, readonly TransferOp[]>> = {
  rc: ['write', 'read', 'send', 'atomic'],
  uc: ['write', 'send'],
  ud: ['send'],
};

export function optionsForTransport(
  op: TransferOp,
  written: WrittenTransferOptions,
  command: Command,
): TransferOptions {
  const options = withoutMultipath(written, command);
  const { transport, size, mtu } = options;
  const name = transport.toUpperCase();
  if (!OPERATIONS[transport].includes(op)) {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      `${name} has no ${op === 'atomic' ? 'atomics' : op.toUpperCase()}`,
      `it has ${OPERATIONS[transport].map((known) => known.toUpperCase()).join(' and ')}`,
    );
  }
  const isGiven = (option: string) => command.getOptionValueSource(option) === 'cli';
  for (const [option, reason] of Object.entries(REFUSED_OPTIONS[transport])) {
    if (!isGiven(option)) continue;
    const flag = command.options.find((known) => known.attributeName() === option)?.long;
    throw new RoceError('ERR_ROCE_CONFLICT', `${flag} cannot be used with ${name}`, reason);
  }
  if (transport !== 'ud') return options;
  if (!isGiven('size')) return { ...options, size: Math.min(size, mtu), mayShrink: true };
  checkDatagramSize(size, mtu);
  return options;
}

function withoutMultipath(options: WrittenTransferOptions, command: Command): TransferOptions {
  const { transport, recovery } = options;
  if (transport !== MULTIPATH) return { ...options, transport };
  if (recovery !== MULTIPATH && command.getOptionValueSource('recovery') === 'cli') {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      `--recovery ${recovery} cannot be used with --transport multipath`,
      'it is RC with --recovery multipath: leave one of them out',
    );
  }
  return { ...options, transport: 'rc', recovery: MULTIPATH };
}
