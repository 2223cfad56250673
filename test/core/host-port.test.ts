import { describe, expect, it } from 'vitest';
import { formatHostPort, parseHost, parseHostPort } from '../../src/core/host-port.js';

describe('HOST:PORT', () => {
  it.each([
    ['127.0.0.1:5000', '127.0.0.1', 5000],
    ['storage-1.example:1', 'storage-1.example', 1],
    ['[::1]:65535', '::1', 65_535],
    ['[fe80::1%eth0]:80', 'fe80::1%eth0', 80],
  ])('%s is read, and written the same', (text, host, port) => {
    expect(parseHostPort(text)).toEqual({ host, port });
    expect(parseHost(text)).toEqual({ host, port });
    expect(formatHostPort(host, port)).toBe(text);
  });

  it.each([
    ['localhost', 'localhost'],
    ['[::1]', '::1'],
    ['::1', '::1'],
    ['fd00::1:5000', 'fd00::1:5000'], // an address in itself
  ])('%s has no port', (text, host) => {
    expect(parseHost(text)).toEqual({ host, port: undefined });
    expect(() => parseHostPort(text)).toThrow(`'${text}' is not HOST:PORT: it has no port`);
  });

  it.each([
    ['', 'it names no host'],
    [':5000', 'it names no host'],
    ['[]:5000', 'it names no host'],
    ['/tmp/socket', 'it names no host'],
    ['[host]:5000', "'host' is not an IPv6 address"],
    ['host:', "'' is not a port"],
    ['host:-1', "'-1' is not a port"],
    ['host:http', "'http' is not a port"],
    ['host/path', "'/path' cannot follow the host"],
    ['[::1]5000', "'5000' cannot follow the host"],
    ['1:2:3:4:5:6:7:8:5000', 'an IPv6 address needs brackets before a port'],
  ])('%j is refused, and the error says why', (text, problem) => {
    const error = expect.objectContaining({ code: 'ERR_ROCE_MALFORMED', message: expect.stringContaining(problem) });
    expect(() => parseHost(text)).toThrow(error);
    expect(() => parseHostPort(text)).toThrow(error);
  });

  it('the port is 1 to 65535, or 0 where the system may choose', () => {
    const outOfRange = expect.objectContaining({ code: 'ERR_ROCE_OUT_OF_RANGE' });
    expect(() => parseHostPort('host:65536')).toThrow(outOfRange);
    expect(() => parseHostPort('host:0')).toThrow(outOfRange);
    expect(parseHostPort('host:0', 0)).toEqual({ host: 'host', port: 0 });
  });
});
