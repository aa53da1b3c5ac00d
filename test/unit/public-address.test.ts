import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isPublicAddress } from '../../src/contracts/settings/public-address.js';

const publicAddresses = `8.8.8.8 1.1.1.1 172.15.255.255 172.32.0.1 100.63.255.255 100.128.0.1 169.253.0.1 193.0.0.1
  2606:4700::1111 2a00:1450:4001:80b::200e 2001:4860:4860::8888
  ::ffff:8.8.8.8 ::ffff:808:808 64:ff9b::8.8.8.8 2002:808:808::1 2001:0:4136:e378:8000:63bf:f7f7:f7f7`;

const privateAddresses = `0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254
  169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1
  198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
  :: ::1 fe80::1 febf::1 fec0::1 fc00::1 fdff::1 ff02::1 100::1 2001:db8::1 2001:2::1 3fff::1 5f00::1 4000::1
  ::127.0.0.1 ::808:808 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0:127.0.0.1
  64:ff9b::127.0.0.1 64:ff9b::a00:1 64:ff9b:1::8.8.8.8 2002:7f00:1::1 2002:a9fe:a9fe::1 2002:c0a8:1::
  2001:0:808:808:0:0:80ff:fffe 2001:0:4136:e378:8000:63bf:3f57:fffe fe80::1%eth0`;

const splitWords = (text: string): string[] => text.trim().split(/\s+/);

test('isPublicAddress accepts public addresses, also IPv4 addresses inside IPv6', () => {
  for (const address of splitWords(publicAddresses)) assert.ok(isPublicAddress(address), address);
});

test('isPublicAddress rejects loopback, private and reserved addresses, and text that is not an address', () => {
  const others = ['', 'localhost', 'example.org', '8.8.8.8.8', '1:2', '[::1]', '8.8.8.8:80'];
  for (const text of [...splitWords(privateAddresses), ...others]) assert.ok(!isPublicAddress(text), text);
});
