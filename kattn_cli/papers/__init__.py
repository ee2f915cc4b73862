"""The numbers that the three papers print, as data; ``README.md`` here says where from. Never imports torch."""
