import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLoopbackAuthority, isLoopbackHost } from '../../src/http/gate.js';

test('addresses and names that are this machine, whatever a resolver says', () => {
  const local = ['127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1', '::ffff:7f12:3456', 'LocalHost'];
  // As uWebSockets.js writes addresses.
  local.push('0000:0000:0000:0000:0000:0000:0000:0001', '0000:0000:0000:0000:0000:ffff:7f00:0001');
  for (const host of local) assert.equal(isLoopbackHost(host), true, host);
  const others = [
    '',
    '0.0.0.0',
    '::',
    '126.255.255.255',
    '128.0.0.1',
    '::2',
    '::ffff:10.0.0.1',
    '::127.0.0.1',
  ];
  others.push('localhost.example.org', 'a.localhost', '127.1', '0x7f.1', '2130706433', '127.0.0.01', '[::1]');
  for (const host of others) assert.equal(isLoopbackHost(host), false, host);
});

test('Host headers that name this machine', () => {
  const local = [
    'localhost',
    'localhost:3000',
    'LOCALHOST:3000',
    'localhost.',
    'localhost.:80',
    '127.0.0.1:3000',
  ];
  local.push(
    '127.8.9.10',
    '[::1]',
    '[::1]:3000',
    '[0:0:0:0:0:0:0:1]:1',
    '[::FFFF:127.0.0.1]:80',
    'localhost:',
  );
  for (const host of local) assert.equal(isLoopbackAuthority(host), true, host);
  const others = [
    '',
    ':3000',
    'example.org',
    'localhost.example.org',
    '127.0.0.1.example.org',
    'a@localhost',
  ];
  others.push(
    'localhost:80:80',
    'localhost:x',
    '::1',
    '[127.0.0.1]',
    '[::1',
    '::1]',
    '[::2]',
    '[::1]x',
    '192.0.2.1',
  );
  others.push(
    'localhost, example.org',
    'localhost/..',
    'localhost..',
    '[::1%lo]',
    'localhost:123456',
    ' localhost',
  );
  for (const host of others) assert.equal(isLoopbackAuthority(host), false, host);
});
