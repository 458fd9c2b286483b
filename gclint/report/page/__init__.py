"""A report as one page for a browser: data, a view of it that knows no HTML, and templates that know no data."""
