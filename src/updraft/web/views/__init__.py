"""The views, one module for each: a look goes in; what comes out is the same for the page, JSON and CSV."""
