/** What recovery schemes keep for all connections of a NIC. */

import { expect, test } from 'vitest';
import { NicContext } from '../../src/retransmit/nic-context.js';

class Budget {
  used = 0;
}
class OtherBudget extends Budget {}

test('a NIC has one instance of each class, whoever asks first; another NIC has its own', () => {
  const nic = new NicContext();
  nic.shared(Budget).used = 3;
  expect(nic.shared(Budget).used).toBe(3);
  expect(nic.shared(Budget)).toBe(nic.shared(Budget));
  expect(nic.shared(OtherBudget).used).toBe(0);
  expect(new NicContext().shared(Budget).used).toBe(0);
});
