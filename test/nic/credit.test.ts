/** The NIC calls its credit scheduler itself: by its due time, apart from the timers of queue pairs. */

import { expect, test } from 'vitest';
import { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { SimHost } from '../../packages/lab/src/sim/sim-host.js';
import { SeededRandom } from '../../src/core/random.js';
import { IpAddress } from '../../src/packet/address.js';

test('credit that is due is granted at its time, also where timers are not judged', () => {
  const address = IpAddress.parse('10.0.0.1');
  const { nic } = new SimHost({
    address,
    events: new EventQueue(),
    random: new SeededRandom(1).stream('nic'),
    pacingCatchUpNs: 0,
  });
  let granted = 0;
  const taker = {
    packetNs: 100,
    get wanted() {
      return 8 - granted;
    },
    grant: (packets: number) => {
      granted += packets;
    },
  };
  expect(nic.nextDeadlineNs).toBe(Number.POSITIVE_INFINITY);
  nic.creditScheduler.charge(1000, 0, 0);
  nic.creditScheduler.join(taker, 0, 0);
  expect([nic.nextDeadlineNs, nic.nextTimerNs]).toEqual([1000, Number.POSITIVE_INFINITY]);
  nic.onDeadline(999, false);
  expect(granted).toBe(0);
  nic.onDeadline(1000, false);
  expect([granted, nic.nextDeadlineNs]).toEqual([4, 1400]);
  nic.onDeadline(1400);
  expect([granted, nic.nextDeadlineNs]).toEqual([8, Number.POSITIVE_INFINITY]);
});
