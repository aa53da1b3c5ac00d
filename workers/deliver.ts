/** Piscina entry: sends webhook messages in a dedicated thread. */
import { createHmac } from 'node:crypto';
import type { LookupAddress } from 'node:dns';
import { lookup, Resolver } from 'node:dns/promises';
import * as http from 'node:http';
import * as https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { singleFlightByName } from '../src/concurrency.js';
import { describeConnectionError } from '../src/connection-problem.js';
import { hasPrivateAddress, isPublicAddress } from '../src/contracts/settings/public-address.js';
import type {
  DeliveryReply,
  DeliveryTask,
  OutgoingMessage,
} from '../src/contracts/webhooks/delivery-tasks.js';

const requestTimeoutMs = 15_000;
const maxResponseBytes = 64 * 1024;
const publicAddressMissing = 'the host has no public address';

/** Node runs only two `lookup` calls in parallel: slow DNS servers would block all others. */
const resolver = new Resolver({ timeout: 3000, tries: 2 });

/** The agent connects only to these addresses (DNS rebinding). Errors contain no internal names. */
const resolvePublic = singleFlightByName(async (host: string): Promise<LookupAddress[]> => {
  const both = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  const found = both.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  const some = found.filter(isPublicAddress);
  if (some.length > 0) return some.map((address) => ({ address, family: isIP(address) }));
  const codes = both.map((one) => (one.status === 'rejected' ? String(one.reason.code) : ''));
  const dnsCode = codes.find((code) => !['', 'ENOTFOUND', 'ENODATA'].includes(code));
  throw new Error(dnsCode === undefined ? publicAddressMissing : `${publicAddressMissing} (${dnsCode})`);
});
const resolveAll = singleFlightByName((host: string) => lookup(host, { all: true }));

const createLookup =
  (resolveHost: typeof resolveAll): LookupFunction =>
  (host, { all }, callback) => {
    const returnAddresses = (addresses: LookupAddress[]): void => {
      const [first] = addresses;
      if (all === true || first === undefined) callback(null, addresses);
      else callback(null, first.address, first.family);
    };
    resolveHost(host).then(returnAddresses, (error) => callback(error, []));
  };

/** Closes idle connections before servers do. */
const agentOptions = { keepAlive: true, timeout: 4000, lookup: createLookup(resolveAll) };
const [httpAgent, httpsAgent] = [new http.Agent(agentOptions), new https.Agent(agentOptions)];
/** Separate: connections of the other agents may lead to private addresses. */
const publicAgent = new https.Agent({ ...agentOptions, lookup: createLookup(resolvePublic) });

function computeSignature({ id, body }: OutgoingMessage, keys: readonly Buffer[], seconds: number): string {
  const signed = `${id}.${seconds}.${body}`;
  return keys.map((key) => `v1,${createHmac('sha256', key).update(signed).digest('base64')}`).join(' ');
}

export default (task: DeliveryTask): Promise<DeliveryReply[]> => {
  const keys = task.secrets.map((secret) => Buffer.from(secret.replace(/^whsec_/, ''), 'base64'));
  return Promise.all(task.messages.map((message) => sendMessage(task, message, keys)));
};

async function sendMessage(
  task: DeliveryTask,
  message: OutgoingMessage,
  keys: readonly Buffer[],
): Promise<DeliveryReply> {
  try {
    const request = openRequest(task, buildHeaders(message, keys));
    return { status: await completeRequest(request, message.body), reason: null };
  } catch (error) {
    return { status: null, reason: describeConnectionError(error).text };
  }
}

function openRequest(task: DeliveryTask, headers: http.OutgoingHttpHeaders): http.ClientRequest {
  const [url, { allowPrivate }] = [new URL(task.url), task];
  const isHttps = url.protocol === 'https:';
  if (!allowPrivate && !isHttps) throw new Error('the URL must use https');
  // The agent performs no DNS lookup for a literal address.
  if (!allowPrivate && hasPrivateAddress(url)) throw new Error(publicAddressMissing);
  const agent = allowPrivate ? (isHttps ? httpsAgent : httpAgent) : publicAgent;
  return (isHttps ? https : http).request(url, { method: 'POST', headers, agent });
}

function buildHeaders(message: OutgoingMessage, keys: readonly Buffer[]): http.OutgoingHttpHeaders {
  const seconds = Math.floor(Date.now() / 1000);
  return {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(message.body),
    'User-Agent': 'Skilltrace',
    'webhook-id': message.id,
    'webhook-timestamp': `${seconds}`,
    'webhook-signature': computeSignature(message, keys, seconds),
  };
}

/** Follows no redirects, which may lead anywhere. @throws Error without a response */
const completeRequest = (request: http.ClientRequest, body: string): Promise<number> =>
  new Promise((resolve, reject) => {
    let hasResponse = false;
    // An AbortSignal costs more CPU than the rest of the request.
    const timer = setTimeout(
      () => request.destroy(new Error(`no response within ${requestTimeoutMs / 1000} s`)),
      requestTimeoutMs,
    );
    request.on('error', reject).on('close', () => {
      clearTimeout(timer);
      // A switch of protocols (101) ends the request without an error.
      if (!hasResponse) reject(new Error('the connection was closed without a response'));
    });
    request.on('response', (response) => {
      hasResponse = true;
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > maxResponseBytes) response.destroy();
      });
      response.on('close', () => resolve(response.statusCode ?? 0));
      response.on('error', reject);
    });
    request.end(body);
  });
