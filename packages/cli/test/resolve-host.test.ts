import { expect, it } from 'vitest';
import { resolveHost } from '../../command/src/resolve-host.js';

it('a literal address stays what it is', async () => {
  expect(await resolveHost('127.0.0.3')).toBe('127.0.0.3');
  expect(await resolveHost('::1')).toBe('::1');
});

it('localhost is where servers wait', async () => {
  expect(await resolveHost('localhost')).toBe('127.0.0.1');
});

it('a name that nobody knows is named', async () => {
  await expect(resolveHost('rocev2.invalid')).rejects.toThrow(/the host name 'rocev2.invalid' has no address/);
});
