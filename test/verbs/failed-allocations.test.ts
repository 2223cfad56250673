/** Each allocation of memory fails once: the call rejects with RoceError, and what it had made until then is gone. In virtual time. */

import { expect, it } from 'vitest';
import { RoceError } from '../../src/core/errors.js';
import { Access } from '../../src/verbs/access.js';
import type { RdmaDevice } from '../../src/verbs/device.js';
import { createPair } from '../support/pair.js';

interface Closable {
  close(): Promise<void>;
}

/** Makes one object of each kind that takes memory; what was made is in `made`. */
async function makeAll(device: RdmaDevice, made: Closable[]): Promise<void> {
  const keep = <T extends Closable>(object: T): T => {
    made.push(object);
    return object;
  };
  const pd = keep(await device.createPd());
  const cq = keep(await device.createCq(16));
  keep(await pd.regMr(4096, Access.LOCAL_WRITE));
  const srq = keep(await pd.createSrq({ depth: 16 }));
  keep(await pd.createQp({ sendCq: cq, srq }));
  keep(await pd.createQp({ sendCq: cq, type: 'UD' }));
}

/** Memory that the NIC can reach now. */
function counting(device: RdmaDevice) {
  const { link } = device;
  const attached = new Set<number>();
  const state = { attached, allocations: 0, failAt: Number.POSITIVE_INFINITY };
  const [allocate, attach, detach] = [link.allocate.bind(link), link.attach.bind(link), link.detach.bind(link)];
  link.allocate = (bytes) => {
    if (++state.allocations === state.failAt) throw new RangeError('Array buffer allocation failed');
    return allocate(bytes);
  };
  link.attach = (memory) => {
    const id = attach(memory);
    attached.add(id);
    return id;
  };
  link.detach = (id) => {
    attached.delete(id);
    detach(id);
  };
  return state;
}

it.each([false, true])('the n-th allocation fails, for every n; with telemetry: %s', async (hasTelemetry) => {
  const device = async () => (await createPair(hasTelemetry ? { estats: {} } : {})).a.device;
  const first = await device();
  const all = counting(first);
  await makeAll(first, []);
  const { allocations } = all;
  expect(allocations).toBeGreaterThan(5);

  for (let n = 1; n <= allocations; n++) {
    const one = await device();
    const memory = counting(one);
    memory.failAt = n;
    const made: Closable[] = [];
    const error = await makeAll(one, made).then(
      () => undefined,
      (reason) => reason,
    );
    expect(error, `allocation ${n}`).toBeInstanceOf(RoceError);
    expect(error).toMatchObject({ code: 'ERR_ROCE_OUT_OF_RANGE', hint: expect.stringContaining('take less') });
    // The NIC refuses to free a protection domain or a completion queue that something uses.
    for (const object of made.reverse()) await object.close();
    expect(memory.attached.size, `allocation ${n}`).toBe(0);
    memory.failAt = Number.POSITIVE_INFINITY;
    await makeAll(one, []);
  }
});
