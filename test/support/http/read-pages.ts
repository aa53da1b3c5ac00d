import type { JsonAnswer } from './http.js';

/**
 * Reads all pages of a list.
 *
 * @param read sends the request with this query
 * @param list the name of the list in the response
 * @returns the entries of each page
 */
export async function readPages<Entry>(
  read: (query: string) => Promise<JsonAnswer>,
  list: string,
  limit: number,
): Promise<Entry[][]> {
  const pages: Entry[][] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { data }: JsonAnswer['json'] = (await read(`?limit=${limit}${cursor && `&cursor=${cursor}`}`)).json;
    pages.push(data[list]);
    cursor = data.next_cursor;
  }
  return pages;
}
