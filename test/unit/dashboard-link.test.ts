/** Where the dashboard is said to be, and where no key is put into its link. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildDashboardLink, buildLocalUrl } from '../../src/app/startup/dashboard-link.js';

const linkOf = (host: string): string | null => buildDashboardLink(buildLocalUrl(host, 3000), 'dev-1');

test('the link leads to this machine, with the key behind #', () => {
  assert.equal(linkOf('localhost'), 'http://localhost:3000/dashboard#key=dev-1');
  assert.equal(linkOf('0.0.0.0'), 'http://127.0.0.1:3000/dashboard#key=dev-1');
  assert.equal(linkOf('::1'), 'http://[::1]:3000/dashboard#key=dev-1');
  assert.equal(linkOf('::'), linkOf('::1'));
});

test('an address at which a development key is refused gets no link with one', () => {
  for (const host of ['192.0.2.1', 'school.example', '2001:db8::1']) assert.equal(linkOf(host), null);
});
