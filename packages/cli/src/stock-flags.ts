/** Flags of the programs of rdma-core that have no meaning here, so that their command lines work or say why not. */

import type { CliIo } from '@rocev2/command';
import { type Command, Option } from 'commander';
import { RoceError } from 'rocev2/internal/core';

interface StockFlag {
  readonly flags: string;
  /** Why the flag has no effect here. */
  readonly note?: string;
  /** Why the flag is refused, and what to use. */
  readonly refusal?: string;
}

const NO_DEVICES = 'rocev2 has no IB devices, and --bind selects the address';

/** Of ibv_rc_pingpong, ibv_uc_pingpong, ibv_ud_pingpong and ibv_srq_pingpong. */
export const PINGPONG_FLAGS: readonly StockFlag[] = [
  { flags: '-d, --ib-dev <device>', note: NO_DEVICES },
  { flags: '-i, --ib-port <port>', note: NO_DEVICES },
  { flags: '-g, --gid-idx <index>', note: 'the GID is that of the address of --bind' },
  { flags: '-l, --sl <sl>', note: 'packets have no service level' },
  { flags: '-e, --events', note: 'completions are always waited for by events' },
  { flags: '-r, --rx-depth <n>', note: 'as many receives are posted as are needed' },
  { flags: '-o, --odp', note: 'memory needs no paging on demand' },
  { flags: '-O, --iodp', note: 'memory needs no paging on demand' },
  { flags: '-P, --prefetch', note: 'memory needs no prefetch' },
  { flags: '-t, --ts', note: 'completions have no time stamps' },
  { flags: '-j, --dm', note: 'there is no device memory' },
  { flags: '-N, --new_send', note: 'there is one interface to post' },
];

/** Of rping. */
export const RPING_FLAGS: readonly StockFlag[] = [
  { flags: '-d', note: 'rping prints debug output with it; use -v' },
  { flags: '-q', note: 'the queue pair is always created by the program' },
  { flags: '-I <address>', refusal: 'use --bind ADDRESS for the address of the client' },
  { flags: '-P', refusal: 'the server serves one client and ends: start it again for the next one' },
];

/** Accepts them, hidden from the help. A flag that is given is explained on stderr, or refused. */
export function addStockFlags(command: Command, flags: readonly StockFlag[], io: CliIo): Command {
  const own = command.options.map(({ short }) => short);
  const foreign = flags.filter((flag) => !own.includes(new Option(flag.flags).short));
  for (const flag of foreign) command.addOption(new Option(flag.flags).hideHelp());
  return command.hook('preAction', (_, running) => {
    for (const { flags: names, note, refusal } of foreign) {
      if (running.getOptionValueSource(new Option(names).attributeName()) !== 'cli') continue;
      const name = names.replace(/[ ,].*/, '');
      if (refusal !== undefined) {
        throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', `${name} of the stock program is not supported`, refusal);
      }
      io.stderr.write(`${name} has no effect here: ${note}\n`);
    }
  });
}
