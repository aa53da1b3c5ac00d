/** Style sheets are bundled for their effect. */
declare module '*.css';
