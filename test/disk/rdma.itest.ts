/** The whole chain as separate processes: NBD clients, the gateway, sK-RDMA, the storage server, a disk in a file. */

import { describe, expect, test } from 'vitest';
import { casesOfRound, timesOfRound } from '../support/rounds.js';
import * as acceptance from './support/acceptance.js';
import { describeStack, gatewayToServer, type Stack } from './support/stack.js';

const SIZE = acceptance.DISK_BYTES;
const FAILOVERS = timesOfRound(100);
const KILLS = timesOfRound(20);

/** What server and gateway say at their end: nothing that was not asked for went wrong. */
function clean(stack: () => Stack): void {
  test('at the end: all over RDMA, no CRC was wrong, nobody broke the protocol', async () => {
    const [server, gateway] = await stack().documents();
    expect(server).toMatchObject({ crcMismatches: 0, protocolErrors: 0, badSequences: 0 });
    expect(gateway).toMatchObject({ storage: { state: 'RDMA', failovers: 0, crcMismatches: 0 } });
  });
}

describeStack('over RDMA', gatewayToServer(SIZE, undefined, '--transport', 'rdma'), (stack) => {
  acceptance.identity(stack);
  acceptance.verifiedFio(stack, ['v1', 'v2', 'v3', 'v4', 'mj', 'v6']);
  acceptance.qemuPatterns(stack);
  acceptance.copies(stack);
  acceptance.fileSystems(stack);
  acceptance.hostileClients(stack);
  acceptance.restarts(stack);
  clean(stack);
});

describe.each(casesOfRound(['random=0.001', 'random=0.01']))('each side loses %s', (loss) => {
  describeStack('over RDMA', gatewayToServer(SIZE, loss, '--transport', 'rdma'), (stack) => {
    acceptance.identity(stack);
    acceptance.verifiedFio(stack, ['v1', 'v3', 'v4', 'v6']);
    acceptance.qemuPatterns(stack);
    acceptance.fileSystems(stack);
    acceptance.restarts(stack);
    clean(stack);
  });
});

describeStack('over RDMA to a server that dies', gatewayToServer(SIZE, undefined), (stack) => {
  test(`the server killed ${KILLS} times while fio verifies what it had acknowledged`, async () => {
    let kills = 0;
    const killing = (async () => {
      for (; kills < KILLS; kills++) {
        await new Promise((resolve) => setTimeout(resolve, 300)); // timer: the life of a server
        await stack().killFirst();
        // Only a gateway that has found the new server can read.
        await stack().succeeds('timeout 60 qemu-io -f raw -c "read 0 4k" "$U"');
      }
    })();
    while (kills < KILLS) {
      await stack().succeeds(acceptance.FIO_JOBS.v1);
      await stack().succeeds(acceptance.FIO_JOBS.v4);
    }
    await killing;
    const [server, gateway] = await stack().documents();
    expect(server).toMatchObject({ crcMismatches: 0, protocolErrors: 0 });
    expect(gateway).toMatchObject({ storage: { crcMismatches: 0, serverRestarts: KILLS } });
  }, 600_000);
});

describeStack('over RDMA that breaks', gatewayToServer(SIZE, undefined, '--hold-down', '10ms'), (stack) => {
  test(`${FAILOVERS} forced failovers while fio verifies`, async () => {
    const { gateway } = stack();
    const count = () => gateway.stderr.split('broke the RDMA connections').length - 1;
    const breaking = setInterval(() => gateway.kill('SIGUSR2'), 50); // timer: how often RDMA breaks
    try {
      while (count() < FAILOVERS) {
        await stack().succeeds(acceptance.FIO_JOBS.v1);
        await stack().succeeds(acceptance.FIO_JOBS.v4);
      }
    } finally {
      clearInterval(breaking);
    }
    const [server, document] = await stack().documents();
    const { storage } = document as { storage: { failovers: number; crcMismatches: number } };
    expect(storage.failovers).toBeGreaterThanOrEqual(FAILOVERS);
    expect(storage.crcMismatches).toBe(0);
    expect(server).toMatchObject({ crcMismatches: 0, protocolErrors: 0 });
  }, 600_000);
});
